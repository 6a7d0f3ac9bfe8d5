#include "transport/fabric_provider.h"

#ifdef HARPE_WITH_FABRIC

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "transport/fabric_endpoint.h"

namespace harpe::transport {
namespace {

constexpr std::size_t kOperations = 2048;  // in flight at once

constexpr std::size_t kFixedNumbers = 3;  // of a contact, before those of its regions

// An operation in flight. libfabric may store its own data in the context, which must come first.
struct Under {
  fi_context2 context{};
  Token token = 0;
  int peer = 0;
  std::uint32_t index = 0;
};

class FabricProvider final : public Provider {
 public:
  FabricProvider(FabricOptions options, FabricEndpoint endpoint)
      : options_(std::move(options)),
        endpoint_(std::move(endpoint)),
        given_(guarantees_of(*endpoint_.info)),
        under_(kOperations),
        staged_(kOperations) {
    for (std::size_t at = 0; at < kOperations; ++at) {
      under_[at].index = static_cast<std::uint32_t>(at);
      free_.push_back(&under_[at]);
    }
  }

  [[nodiscard]] std::string name() const override { return options_.provider; }
  [[nodiscard]] const Guarantees& given() const override { return given_; }
  [[nodiscard]] Checked<Contact> expose(std::span<const Region> regions) override;
  [[nodiscard]] Checked<Ok> connect(std::span<const Contact> contacts) override;
  [[nodiscard]] bool carries(const SignalUpdate& update) const override {
    return given_.immediate && encode_immediate(update, given_.immediate_bytes).has_value();
  }
  [[nodiscard]] Outcome<Posted> post(const Write& write) override;
  [[nodiscard]] Outcome<Posted> post(const SignalWrite& signal) override;
  [[nodiscard]] Outcome<bool> turn(std::vector<Token>& completed) override;

 private:
  struct Remote {
    std::uint64_t base = 0;
    std::uint64_t key = 0;
  };
  struct Peer {
    fi_addr_t address = FI_ADDR_UNSPEC;
    std::vector<Remote> regions;
    Remote landing;
  };
  // One write to one peer, with libfabric's arguments.
  struct Order {
    int peer = 0;
    void* source = nullptr;
    std::size_t bytes = 0;
    void* description = nullptr;
    std::uint64_t destination = 0;
    std::uint64_t key = 0;
    std::optional<std::uint64_t> data{};
    bool fence = false;
    Token token = 0;
  };
  void aim(Order& order, Place destination) const;
  [[nodiscard]] Outcome<Posted> submit(const Order& order, Under& under);
  [[nodiscard]] Outcome<Ok> finish(const fi_cq_data_entry& entry, std::vector<Token>& completed);
  [[nodiscard]] Outcome<Ok> apply(std::uint64_t data);
  [[nodiscard]] TransportError read_error();
  [[nodiscard]] Checked<Ok> connect_one(const Contact& contact, int rank);

  FabricOptions options_;
  FabricEndpoint endpoint_;
  Guarantees given_;
  std::vector<Region> regions_;
  std::vector<std::int64_t> sizes_;
  std::vector<Peer> peers_;
  std::vector<Under> under_;
  std::vector<Under*> free_;
  std::vector<std::uint32_t> staged_;  // values in flight, by index of the operation
  // Closed before the endpoint that they may be bound to.
  std::vector<FabricMemory> memories_;
  FabricMemory staging_;
  std::vector<std::uint32_t> landed_{0};  // target of signals that only carry data
  FabricMemory landing_;
};

Checked<Contact> FabricProvider::expose(std::span<const Region> regions) {
  regions_.assign(regions.begin(), regions.end());
  HP_TRY(staging_, register_memory(endpoint_, std::as_writable_bytes(std::span(staged_)), false));
  HP_TRY(landing_, register_memory(endpoint_, std::as_writable_bytes(std::span(landed_)), true));
  std::array<std::byte, 256> name{};
  std::size_t length = name.size();
  const int status = ::fi_getname(&endpoint_.endpoint->fid, name.data(), &length);
  if (status != 0) return refuse_fabric(options_.provider, "fi_getname", status);
  Contact contact;
  std::vector<std::uint64_t> numbers = {length, landing_.base, landing_.key};
  for (const Region& region : regions) {
    HP_TRY(FabricMemory memory, register_memory(endpoint_, region.bytes, true));
    contact.sizes.push_back(static_cast<std::int64_t>(region.bytes.size()));
    numbers.push_back(memory.base);
    numbers.push_back(memory.key);
    memories_.push_back(std::move(memory));
  }
  sizes_ = contact.sizes;
  const auto bytes = std::as_bytes(std::span(numbers));
  contact.address.assign(bytes.begin(), bytes.end());
  contact.address.insert(contact.address.end(), name.begin(),
                         name.begin() + static_cast<std::ptrdiff_t>(length));
  return contact;
}

Checked<Ok> FabricProvider::connect(std::span<const Contact> contacts) {
  int rank = 0;
  for (const Contact& contact : contacts) HP_REQUIRE_OK(connect_one(contact, rank++));
  return Ok{};
}

Checked<Ok> FabricProvider::connect_one(const Contact& contact, int rank) {
  std::vector<std::uint64_t> numbers(kFixedNumbers + 2 * contact.sizes.size());
  const std::size_t head = numbers.size() * sizeof(std::uint64_t);
  const bool has_head = contact.address.size() >= head;
  if (has_head) std::memcpy(numbers.data(), contact.address.data(), head);
  if (!has_head || contact.address.size() - head != numbers[0]) {
    return make_diag(DiagCode::N002,
                     {{"provider", options_.provider},
                      {"call", "connect"},
                      {"reason", "rank " + std::to_string(rank) + " gives a contact of " +
                                     std::to_string(contact.address.size()) + " bytes"}});
  }
  Peer peer;
  const int count = ::fi_av_insert(endpoint_.addresses.get(), contact.address.data() + head, 1,
                                   &peer.address, 0, nullptr);
  if (count != 1) return refuse_fabric(options_.provider, "fi_av_insert", -FI_EINVAL);
  peer.landing = {.base = numbers[1], .key = numbers[2]};
  for (std::size_t at = kFixedNumbers; at < numbers.size(); at += 2) {
    peer.regions.push_back({.base = numbers[at], .key = numbers[at + 1]});
  }
  peers_.push_back(std::move(peer));
  return Ok{};
}

void FabricProvider::aim(Order& order, Place destination) const {
  const Remote& remote = peers_[static_cast<std::size_t>(order.peer)]
                             .regions[static_cast<std::size_t>(destination.region)];
  order.destination = remote.base + static_cast<std::uint64_t>(destination.offset);
  order.key = remote.key;
}

Outcome<Posted> FabricProvider::submit(const Order& order, Under& under) {
  iovec source{.iov_base = order.source, .iov_len = order.bytes};
  fi_rma_iov destination{};
  destination.addr = order.destination;
  destination.len = order.bytes;
  destination.key = order.key;
  void* description = order.description;
  fi_msg_rma message{};
  message.msg_iov = &source;
  message.desc = &description;
  message.iov_count = 1;
  message.addr = peers_[static_cast<std::size_t>(order.peer)].address;
  message.rma_iov = &destination;
  message.rma_iov_count = 1;
  message.context = &under.context;
  message.data = order.data.value_or(0);
  under.token = order.token;
  under.peer = order.peer;
  const std::uint64_t flags =
      FI_COMPLETION | (given_.remote_completion ? FI_DELIVERY_COMPLETE : 0) |
      (order.data ? FI_REMOTE_CQ_DATA : 0) | (order.fence && given_.fence ? FI_FENCE : 0);
  const ssize_t status = ::fi_writemsg(endpoint_.endpoint.get(), &message, flags);
  if (status == -FI_EAGAIN) return Posted::Later;
  if (status != 0) {
    return TransportError{
        .kind = Failure::PeerLost,
        .peer = order.peer,
        .what = std::string("fi_writemsg: ") + ::fi_strerror(static_cast<int>(-status))};
  }
  free_.pop_back();
  return Posted::Yes;
}

Outcome<Posted> FabricProvider::post(const Write& write) {
  if (free_.empty()) return Posted::Later;
  const auto region = static_cast<std::size_t>(write.source.region);
  Order order{.peer = write.peer,
              .source = regions_[region].bytes.data() + write.source.offset,
              .bytes = static_cast<std::size_t>(write.bytes),
              .description = ::fi_mr_desc(memories_[region].registration.get()),
              .fence = write.fence,
              .token = write.token};
  aim(order, write.destination);
  if (write.immediate) order.data = encode_immediate(*write.immediate, given_.immediate_bytes);
  return submit(order, *free_.back());
}

Outcome<Posted> FabricProvider::post(const SignalWrite& signal) {
  if (free_.empty()) return Posted::Later;
  Under& under = *free_.back();
  Order order{.peer = signal.peer,
              .source = &staged_[under.index],
              .bytes = sizeof(std::uint32_t),
              .description = ::fi_mr_desc(staging_.registration.get()),
              .fence = signal.fence,
              .token = signal.token};
  if (signal.update.mode == SignalMode::Add) {
    // Applied by the other rank's proxy. Travels with a word that no rank reads, because `shm`
    // never completes a write of no bytes.
    order.data = encode_immediate(signal.update, given_.immediate_bytes);
    const Remote& landing = peers_[static_cast<std::size_t>(signal.peer)].landing;
    order.destination = landing.base;
    order.key = landing.key;
  } else {
    staged_[under.index] = signal.update.value;
    aim(order, signal.update.word);
  }
  return submit(order, under);
}

Outcome<bool> FabricProvider::turn(std::vector<Token>& completed) {
  std::array<fi_cq_data_entry, 64> entries{};
  const ssize_t count = ::fi_cq_read(endpoint_.completions.get(), entries.data(), entries.size());
  if (count == -FI_EAGAIN) return false;
  if (count == -FI_EAVAIL) return read_error();
  if (count < 0) {
    return TransportError{
        .kind = Failure::PeerLost,
        .what = std::string("fi_cq_read: ") + ::fi_strerror(static_cast<int>(-count))};
  }
  for (std::size_t at = 0; at < static_cast<std::size_t>(count); ++at) {
    HP_REQUIRE_OK(finish(entries[at], completed));
  }
  return count > 0;
}

Outcome<Ok> FabricProvider::finish(const fi_cq_data_entry& entry, std::vector<Token>& completed) {
  // `sockets` also marks completions of its own writes as carrying data.
  constexpr std::uint64_t kIncoming = FI_REMOTE_CQ_DATA | FI_REMOTE_WRITE;
  if ((entry.flags & kIncoming) == kIncoming) return apply(entry.data);
  auto* const under = static_cast<Under*>(entry.op_context);
  if (under == nullptr) return Ok{};
  completed.push_back(under->token);
  free_.push_back(under);
  return Ok{};
}

// The data of this put is placed and, with in-order writes, all earlier data. Release: a thread
// that acquires the signal may read that data.
Outcome<Ok> FabricProvider::apply(std::uint64_t data) {
  const auto update = decode_immediate(data, given_.immediate_bytes, sizes_);
  if (!update.ok()) {
    return TransportError{
        .kind = Failure::Malformed, .what = "the data of a put", .reason = update.error().reason};
  }
  std::byte* const at =
      regions_[static_cast<std::size_t>(update->word.region)].bytes.data() + update->word.offset;
  const std::atomic_ref word(*reinterpret_cast<std::uint32_t*>(at));
  if (update->mode == SignalMode::Add) {
    word.fetch_add(update->value, std::memory_order_release);
  } else if (word.load(std::memory_order_relaxed) < update->value) {
    word.store(update->value, std::memory_order_release);
  }
  return Ok{};
}

TransportError FabricProvider::read_error() {
  fi_cq_err_entry entry{};
  TransportError error{.kind = Failure::PeerLost, .what = "fi_cq_readerr"};
  if (::fi_cq_readerr(endpoint_.completions.get(), &entry, 0) < 0) return error;
  if (const auto* const under = static_cast<const Under*>(entry.op_context)) {
    error.peer = under->peer;
  }
  error.what = ::fi_strerror(entry.err);
  return error;
}

// Providers whose order this project's tests have checked.
constexpr std::array kTested = {"tcp;ofi_rxm", "sockets", "shm"};
constexpr std::array kKnown = {"tcp;ofi_rxm", "sockets",       "shm", "net",
                               "udp;ofi_rxd", "verbs;ofi_rxm", "efa", "cxi"};

}  // namespace

Checked<std::unique_ptr<Provider>> make_fabric_provider(const FabricOptions& options) {
  HP_TRY(FabricEndpoint endpoint, open_fabric(options));
  return std::unique_ptr<Provider>(std::make_unique<FabricProvider>(options, std::move(endpoint)));
}

std::vector<FabricOffer> examine_fabric(const std::string& interface) {
  std::vector<FabricOffer> offers;
  for (const char* const provider : kKnown) {
    FabricOffer offer{
        .provider = provider,
        .is_tested = std::ranges::find(kTested, std::string(provider)) != kTested.end(),
        .asked = {.in_order = true,
                  .fence = true,
                  .immediate = true,
                  .immediate_bytes = 8,
                  .remote_completion = true,
                  .counts = true}};
    const Checked<Info> info = discover({.provider = provider, .interface = interface});
    offer.is_there = info.ok();
    if (info.ok()) offer.given = guarantees_of(**info);
    offers.push_back(std::move(offer));
  }
  return offers;
}

}  // namespace harpe::transport

#else

namespace harpe::transport {

Checked<std::unique_ptr<Provider>> make_fabric_provider(const FabricOptions& options) {
  return make_diag(DiagCode::N001, {{"provider", options.provider}});
}

std::vector<FabricOffer> examine_fabric(const std::string& /*interface*/) { return {}; }

}  // namespace harpe::transport

#endif
