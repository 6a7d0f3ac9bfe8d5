#include "transport/endpoint.h"

#include <functional>
#include <thread>

#include "support/check.h"

namespace harpe::transport {
namespace {

Deadline now() { return std::chrono::steady_clock::now(); }

// Waits are for other ranks over networks: first poll, then yield, then sleep.
class Patience {
 public:
  void rest() {
    ++looks_;
    if (looks_ < 64) return;
    if (looks_ < 1024) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  int looks_ = 0;
};

Command command_of(const Signal& signal) {
  return {.operation = Operation::Signal,
          .word = signal.word,
          .value = signal.value,
          .mode = signal.mode,
          .strength = signal.strength,
          .follows = signal.follows};
}

}  // namespace

Endpoint::Endpoint(const EndpointOptions& options, std::unique_ptr<Provider> provider)
    : options_(options), provider_(std::move(provider)) {}

Checked<std::unique_ptr<Endpoint>> Endpoint::make(const EndpointOptions& options,
                                                  std::unique_ptr<Provider> provider,
                                                  std::span<const Region> regions,
                                                  Exchange& exchange) {
  HP_CHECK(options.rank >= 0 && options.rank < options.ranks, "a rank is one of the ranks");
  std::unique_ptr<Endpoint> endpoint(new Endpoint(options, std::move(provider)));
  HP_REQUIRE_OK(endpoint->join(regions, exchange));
  return endpoint;
}

std::unique_ptr<Ring> Endpoint::make_ring(std::size_t peer) const {
  const std::size_t capacity = options_.ring_capacity;
  if (options_.ring_memory.empty()) return std::make_unique<Ring>(capacity);
  const std::size_t bytes = Ring::bytes_for(capacity);
  return std::make_unique<Ring>(capacity, options_.ring_memory.subspan(peer * bytes, bytes));
}

Checked<Ok> Endpoint::join(std::span<const Region> regions, Exchange& exchange) {
  HP_TRY(strategy_,
         choose(options_.policy, provider_->given(), options_.may_hold, provider_->name()));
  regions_.assign(regions.begin(), regions.end());
  HP_TRY(const Contact own, provider_->expose(regions));
  HP_TRY(const std::vector<Blob> blobs, exchange.all_gather(print(own)));
  HP_CHECK(static_cast<int>(blobs.size()) == options_.ranks, "every rank gives something");
  std::vector<Contact> contacts;
  for (std::size_t at = 0; at < blobs.size(); ++at) {
    std::optional<Contact> contact = parse_contact(blobs[at]);
    if (!contact) {
      return to_diag({.kind = Failure::Malformed,
                      .rank = options_.rank,
                      .peer = static_cast<int>(at),
                      .what = "the contact",
                      .reason = std::to_string(blobs[at].size()) + " bytes that are none"});
    }
    sizes_.push_back(contact->sizes);
    contacts.push_back(std::move(*contact));
    rings_.push_back(make_ring(at));
  }
  const Checked<Ok> connected = provider_->connect(contacts);
  // Other ranks may write to a rank that has connected, so none continues before all have.
  HP_REQUIRE_OK(agree(exchange, connected.ok() ? std::nullopt : std::optional(connected.error())));
  sender_ = std::make_unique<Sender>(
      Sender::Options{.rank = options_.rank, .strategy = strategy_, .limit = options_.limit},
      *provider_, sizes_, rings_);
  return Ok{};
}

Outcome<Ticket> Endpoint::push(int peer, const Command& command) {
  HP_CHECK(peer >= 0 && peer < options_.ranks, "a peer is one of the ranks");
  if (is_over_.load(std::memory_order_acquire)) return *error();
  const Words words = encode(command);
  const auto to = static_cast<std::size_t>(peer);
  const Reach reach{.own = sizes_[static_cast<std::size_t>(options_.rank)], .peer = sizes_[to]};
  std::string reason;
  if (const auto checked = decode(words, reach); !checked.ok()) {
    reason = checked.error().reason;
  } else if (command.mode == SignalMode::Add &&
             !provider_->carries({command.word, command.value, command.mode})) {
    reason = "provider `" + provider_->name() + "` cannot add " + std::to_string(command.value) +
             " to a word there";
  }
  if (!reason.empty()) {
    return TransportError{.kind = Failure::Malformed,
                          .rank = options_.rank,
                          .peer = peer,
                          .what = "a descriptor for memory",
                          .reason = reason};
  }
  const Deadline since = now();
  if (const auto ticket = rings_[to]->push(words, since + options_.limit)) return *ticket;
  if (is_over_.load(std::memory_order_acquire)) return *error();
  return expired(peer, "room in the ring", since);
}

Outcome<Ticket> Endpoint::put(int peer, const Transfer& transfer) {
  return push(peer, {.operation = Operation::Put,
                     .source = transfer.source,
                     .destination = transfer.destination,
                     .bytes = transfer.bytes});
}

Outcome<Ticket> Endpoint::put_signal(int peer, const Transfer& transfer, const Signal& signal) {
  Command command = command_of(signal);
  command.operation = Operation::PutSignal;
  command.source = transfer.source;
  command.destination = transfer.destination;
  command.bytes = transfer.bytes;
  return push(peer, command);
}

Outcome<Ticket> Endpoint::signal(int peer, const Signal& signal) {
  return push(peer, command_of(signal));
}

Outcome<Ticket> Endpoint::fence(int peer) { return push(peer, {.operation = Operation::Fence}); }

Outcome<Ok> Endpoint::wait_until(int peer, const std::string& what,
                                 const std::function<bool()>& is_there) {
  const Deadline since = now();
  for (Patience patience; !is_there(); patience.rest()) {
    if (is_over_.load(std::memory_order_acquire)) return *error();
    if (now() - since >= options_.limit) return expired(peer, what, since);
  }
  return Ok{};
}

Outcome<Ok> Endpoint::wait_completed(int peer, Ticket ticket) {
  const Ring& ring = *rings_[static_cast<std::size_t>(peer)];
  return wait_until(peer, "remote completion", [&] { return ring.completed() > ticket; });
}

// Pushes no descriptor, so that signals which are held back stay so.
Outcome<Ok> Endpoint::flush(int peer) {
  const Ring& ring = *rings_[static_cast<std::size_t>(peer)];
  const Ticket end = ring.reserved();
  return wait_until(peer, "the sources of puts", [&] { return ring.sent() >= end; });
}

Outcome<Ok> Endpoint::quiet(int peer) {
  HP_TRY(const Ticket ticket, push(peer, {.operation = Operation::Quiet}));
  return wait_completed(peer, ticket);
}

Outcome<Ok> Endpoint::quiet_all() {
  std::vector<Ticket> tickets;
  for (int peer = 0; peer < options_.ranks; ++peer) {
    HP_TRY(const Ticket ticket, push(peer, {.operation = Operation::Quiet}));
    tickets.push_back(ticket);
  }
  for (int peer = 0; peer < options_.ranks; ++peer) {
    HP_REQUIRE_OK(wait_completed(peer, tickets[static_cast<std::size_t>(peer)]));
  }
  return Ok{};
}

std::uint32_t* Endpoint::find(Place word) const {
  const auto region = static_cast<std::size_t>(word.region);
  HP_CHECK(region < regions_.size() && word.offset >= 0 && word.offset % 4 == 0 &&
               word.offset + 4 <= static_cast<std::int64_t>(regions_[region].bytes.size()),
           "a word of this rank's own memory");
  return reinterpret_cast<std::uint32_t*>(regions_[region].bytes.data() + word.offset);
}

std::uint32_t Endpoint::read(Place word) const {
  return std::atomic_ref(*find(word)).load(std::memory_order_acquire);
}

Outcome<Ok> Endpoint::wait(Place word, std::uint32_t value, int from) {
  Outcome<Ok> waited = wait_until(from, "a signal", [&] { return read(word) >= value; });
  if (!waited.ok() && waited.error().kind == Failure::Expired && waited.error().peer == from) {
    waited.error().what = "signal " + std::to_string(word.offset / 4) + " of region " +
                          std::to_string(word.region) + " to be " + std::to_string(value) +
                          ", saw " + std::to_string(read(word)) + ",";
  }
  return waited;
}

TransportError Endpoint::expired(int peer, std::string what, Deadline since) const {
  return {.kind = Failure::Expired,
          .rank = options_.rank,
          .peer = peer,
          .what = std::move(what),
          .elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(now() - since)};
}

Counters Endpoint::counters() const {
  Counters all;
  for (int peer = 0; peer < options_.ranks; ++peer) all += counters(peer);
  return all;
}

bool Endpoint::turn() {
  if (is_over_.load(std::memory_order_relaxed)) return false;
  const Outcome<bool> stepped = sender_->step();
  if (stepped.ok()) return *stepped;
  const std::scoped_lock lock(error_lock_);
  error_ = stepped.error();
  error_->rank = options_.rank;
  is_over_.store(true, std::memory_order_release);
  return false;
}

std::optional<TransportError> Endpoint::error() const {
  const std::scoped_lock lock(error_lock_);
  return error_;
}

}  // namespace harpe::transport
