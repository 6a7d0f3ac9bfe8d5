#include "exec/cuda/runtime/peer_memory.h"

#include <unistd.h>

#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string>

#include "exec/cuda/runtime/current_device.h"
#include "support/round_up.h"

namespace harpe::cuda {
namespace {

// Identifies a process, also across containers with process ids of their own.
struct ProcessMark {
  std::int64_t number = 0;
  std::uint64_t drawn = 0;
  friend bool operator==(const ProcessMark&, const ProcessMark&) = default;
};

ProcessMark this_process() {
  static const std::uint64_t kDrawn = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return {.number = ::getpid(), .drawn = kDrawn};
}

template <class T>
std::optional<Diag> failure_of(const Checked<T>& made) {
  return made.ok() ? std::nullopt : std::optional(made.error());
}

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

}  // namespace

// What a rank sends to the others about its part.
struct PeerMemory::Card {
  CUipcMemHandle handle{};
  ProcessMark process;
  std::int64_t gpu = 0;  // the GPU's id in that process
  DeviceAddress address = 0;
  std::int64_t bytes = 0;

  [[nodiscard]] static Checked<Card> make(const Device& device, const DeviceMemory& own) {
    Card card{.handle = {},
              .process = this_process(),
              .gpu = device.facts().id.value,
              .address = own.address(),
              .bytes = own.bytes()};
    HP_TRY(card.handle, export_memory(device, own));
    return card;
  }
};

Checked<PeerMemory> PeerMemory::share(const Device& device, const DeviceMemory& own,
                                      transport::Exchange& exchange) {
  const Checked<Card> card = Card::make(device, own);
  HP_REQUIRE_OK(transport::agree(exchange, failure_of(card)));
  HP_TRY(const auto blobs, exchange.all_gather(std::as_bytes(std::span(&*card, 1))));
  const auto reach_all = [&]() -> Checked<PeerMemory> {
    PeerMemory memory;
    for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
      Card peer;
      if (blobs[rank].size() != sizeof(peer)) return make_diag(DiagCode::N015, {{"rank", rank}});
      std::memcpy(&peer, blobs[rank].data(), sizeof(peer));
      if (peer.bytes != card->bytes) return make_diag(DiagCode::N015, {{"rank", rank}});
      HP_REQUIRE_OK(memory.add(device, peer));
    }
    return memory;
  };
  Checked<PeerMemory> memory = reach_all();
  HP_REQUIRE_OK(transport::agree(exchange, failure_of(memory)));
  return memory;
}

Checked<Ok> PeerMemory::add(const Device& device, const Card& peer) {
  if (peer.process != this_process()) {
    auto imported = ImportedMemory::open(device, peer.handle);
    if (!imported.ok()) {
      return with_note(imported.error(), "for memory of rank " + std::to_string(places_.size()));
    }
    places_.push_back(imported->address());
    imports_.push_back(std::move(imported).value());
    return Ok{};
  }
  if (peer.gpu != device.facts().id.value) {
    HP_TRY(const Device other, device.open_peer(DeviceId(peer.gpu)));
    HP_REQUIRE_OK(device.reach(other));
  }
  places_.push_back(peer.address);
  return Ok{};
}

Checked<std::shared_ptr<Arena>> Arena::make(const Device& device, std::int64_t bytes,
                                            transport::Exchange& exchange) {
  const auto take = [&]() -> Checked<DeviceMemory> {
    const std::int64_t whole = round_up(bytes, kSharedGranule);
    HP_REQUIRE_OK(check_memory(device, whole));
    return DeviceMemory::allocate(device, whole);
  };
  Checked<DeviceMemory> own = take();
  HP_REQUIRE_OK(transport::agree(exchange, failure_of(own)));
  HP_TRY(PeerMemory of_all, PeerMemory::share(device, *own, exchange));
  return std::shared_ptr<Arena>(
      new Arena{.own = std::move(own).value(), .of_all = std::move(of_all)});
}

Checked<Ok> check_memory(const Device& device, std::int64_t needed) {
  const CurrentDevice current(device);
  std::size_t free = 0;
  std::size_t total = 0;
  HP_REQUIRE_OK(
      driver_call(device.driver(), "cuMemGetInfo", device.driver().cuMemGetInfo(&free, &total)));
  const auto left = static_cast<std::int64_t>(free);
  if (needed <= left) return Ok{};
  return make_diag(DiagCode::G073, {{"gpu", device.facts().id.value},
                                    {"free", left / kMebibyte},
                                    {"needed", round_up(needed, kMebibyte) / kMebibyte}});
}

}  // namespace harpe::cuda
