#include "transport/shared_provider.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fstream>

#include "transport/shared_memory.h"

namespace harpe::transport {
namespace {

constexpr const char* kName = "shared";

// The exposing process and its pid namespace. `boot` identifies one boot of a machine; process ids
// are only meaningful within one pid namespace.
struct Self {
  std::array<char, 40> boot{};
  std::int64_t processes = 0;  // inode of the pid namespace
  std::int64_t process = 0;
  friend bool operator==(const Self&, const Self&) = default;
};

struct Shared {
  std::uint64_t address = 0;  // in its own process
  std::int64_t file = -1;
};

Diag refused(const std::string& call, const std::string& reason) {
  return make_diag(DiagCode::N002, {{"provider", kName}, {"call", call}, {"reason", reason}});
}

Self find_self() {
  Self self;
  std::ifstream("/proc/sys/kernel/random/boot_id").read(self.boot.data(), 36);
  std::array<char, 64> link{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", link.data(), link.size() - 1);
  const std::string name(link.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (const std::size_t at = name.find('['); at != std::string::npos) {
    self.processes = std::strtoll(name.c_str() + at + 1, nullptr, 10);
  }
  self.process = ::getpid();
  return self;
}

}  // namespace

class SharedProvider final : public Provider {
 public:
  [[nodiscard]] std::string name() const override { return kName; }
  [[nodiscard]] const Guarantees& given() const override { return given_; }
  [[nodiscard]] Checked<Contact> expose(std::span<const Region> regions) override;
  [[nodiscard]] Checked<Ok> connect(std::span<const Contact> contacts) override;
  [[nodiscard]] bool carries(const SignalUpdate& /*update*/) const override { return true; }
  [[nodiscard]] Outcome<Posted> post(const Write& write) override;
  [[nodiscard]] Outcome<Posted> post(const SignalWrite& signal) override;
  [[nodiscard]] Outcome<bool> turn(std::vector<Token>& completed) override;

 private:
  [[nodiscard]] Checked<Ok> connect_one(const Contact& contact);
  [[nodiscard]] std::byte* find(int peer, Place place) const {
    return peers_[static_cast<std::size_t>(peer)][static_cast<std::size_t>(place.region)] +
           place.offset;
  }
  void update(int peer, const SignalUpdate& update) const;

  // Stores of one thread are seen in order if the last one is a release.
  Guarantees given_{.in_order = true,
                    .immediate = true,
                    .immediate_bytes = 8,
                    .remote_completion = true,
                    .counts = true};
  std::vector<std::byte*> own_;
  std::vector<std::vector<std::byte*>> peers_;
  std::vector<SharedMemory> mapped_;
  std::vector<Token> done_;
};

Checked<Contact> SharedProvider::expose(std::span<const Region> regions) {
  Contact contact;
  const Self self = find_self();
  const auto append = [&](std::span<const std::byte> bytes) {
    contact.address.insert(contact.address.end(), bytes.begin(), bytes.end());
  };
  append(std::as_bytes(std::span(&self, 1)));
  for (const Region& region : regions) {
    own_.push_back(region.bytes.data());
    contact.sizes.push_back(static_cast<std::int64_t>(region.bytes.size()));
    const Shared shared{.address = reinterpret_cast<std::uint64_t>(region.bytes.data()),
                        .file = region.file};
    append(std::as_bytes(std::span(&shared, 1)));
  }
  return contact;
}

Checked<Ok> SharedProvider::connect(std::span<const Contact> contacts) {
  for (const Contact& contact : contacts) HP_REQUIRE_OK(connect_one(contact));
  return Ok{};
}

Checked<Ok> SharedProvider::connect_one(const Contact& contact) {
  const std::size_t count = contact.sizes.size();
  Self other;
  std::vector<Shared> shared(count);
  if (contact.address.size() != sizeof(Self) + count * sizeof(Shared)) {
    return refused("connect", "a contact of " + std::to_string(contact.address.size()) + " bytes");
  }
  std::memcpy(&other, contact.address.data(), sizeof(Self));
  if (count != 0) {
    std::memcpy(shared.data(), contact.address.data() + sizeof(Self), count * sizeof(Shared));
  }
  const Self self = find_self();
  std::vector<std::byte*>& regions = peers_.emplace_back();
  if (other == self) {
    for (const Shared& one : shared) regions.push_back(reinterpret_cast<std::byte*>(one.address));
    return Ok{};
  }
  if (other.boot != self.boot || other.processes != self.processes) {
    return refused("connect", "rank " + std::to_string(peers_.size() - 1) + " is on another host");
  }
  for (std::size_t at = 0; at < count; ++at) {
    HP_TRY(SharedMemory memory,
           SharedMemory::open(other.process, static_cast<int>(shared[at].file), contact.sizes[at]));
    regions.push_back(memory.bytes().data());
    mapped_.push_back(std::move(memory));
  }
  return Ok{};
}

void SharedProvider::update(int peer, const SignalUpdate& update) const {
  auto& value = *reinterpret_cast<std::uint32_t*>(find(peer, update.word));
  const std::atomic_ref word(value);
  if (update.mode == SignalMode::Add) {
    word.fetch_add(update.value, std::memory_order_release);
  } else {
    word.store(update.value, std::memory_order_release);
  }
}

Outcome<Posted> SharedProvider::post(const Write& write) {
  if (write.bytes != 0) {
    std::memcpy(find(write.peer, write.destination),
                own_[static_cast<std::size_t>(write.source.region)] + write.source.offset,
                static_cast<std::size_t>(write.bytes));
  }
  if (write.immediate) update(write.peer, *write.immediate);
  done_.push_back(write.token);
  return Posted::Yes;
}

Outcome<Posted> SharedProvider::post(const SignalWrite& signal) {
  update(signal.peer, signal.update);
  done_.push_back(signal.token);
  return Posted::Yes;
}

Outcome<bool> SharedProvider::turn(std::vector<Token>& completed) {
  const bool any = !done_.empty();
  completed.insert(completed.end(), done_.begin(), done_.end());
  done_.clear();
  return any;
}

std::unique_ptr<Provider> make_shared_provider() { return std::make_unique<SharedProvider>(); }

}  // namespace harpe::transport
