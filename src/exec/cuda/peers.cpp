#include "exec/cuda/peers.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "exec/cuda/current_device.h"
#include "support/round_up.h"

namespace harpe::cuda {
namespace {

constexpr std::int64_t kMebibyte = 1024 * 1024;

// Each GPU once, in the order of the first rank that has it.
Checked<std::vector<Device>> open_devices(const std::shared_ptr<const DriverApi>& driver,
                                          const std::vector<DeviceId>& gpus) {
  std::vector<Device> devices;
  for (const DeviceId gpu : gpus) {
    const bool is_open = std::ranges::any_of(
        devices, [&](const Device& device) { return device.facts().id == gpu; });
    if (is_open) continue;
    HP_TRY(Device device, Device::open(driver, gpu));
    devices.push_back(std::move(device));
  }
  return devices;
}

Checked<Ok> make_peers(const Device& one, const Device& other) {
  const DriverApi& driver = one.driver();
  CUdevice from = 0;
  CUdevice to = 0;
  int can = 0;
  HP_REQUIRE_OK(
      driver_call(driver, "cuDeviceGet", driver.cuDeviceGet(&from, one.facts().id.value)));
  HP_REQUIRE_OK(
      driver_call(driver, "cuDeviceGet", driver.cuDeviceGet(&to, other.facts().id.value)));
  HP_REQUIRE_OK(
      driver_call(driver, "cuDeviceCanAccessPeer", driver.cuDeviceCanAccessPeer(&can, from, to)));
  if (can == 0) {
    return make_diag(DiagCode::G071,
                     {{"one", one.facts().id.value}, {"other", other.facts().id.value}});
  }
  return one.reach(other);
}

Checked<Ok> make_all_peers(const std::vector<Device>& devices) {
  for (const Device& one : devices) {
    for (const Device& other : devices) {
      if (one.facts().id != other.facts().id) HP_REQUIRE_OK(make_peers(one, other));
    }
  }
  return Ok{};
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

// What is shared between processes is shared in whole pages of the GPU: such memory is not a part
// of an allocation that holds other things too.
constexpr std::int64_t kSharedGranule = 2 * kMebibyte;

}  // namespace

// What a rank tells the others of itself.
struct Peers::Handles {
  CUipcMemHandle arena{};
  CUipcMemHandle page{};
  std::int64_t arena_bytes = 0;
  std::int32_t flags = 0;
};

// A rank in a process of its own, with what the others need to reach it.
struct Peers::Shared {
  Own own;
  Handles handles;
};

const Peers::View& Peers::view(int rank) const {
  HP_CHECK(rank >= 0 && rank < ranks(), "there is no such rank");
  return views_[static_cast<std::size_t>(rank)];
}

const Peers::Own& Peers::own(int rank) const {
  const auto found = own_.find(rank);
  HP_CHECK(found != own_.end(), "the rank is in another process");
  return found->second;
}

SignalPage& Peers::page(int rank) {
  const auto found = own_.find(rank);
  HP_CHECK(found != own_.end(), "the rank is in another process");
  return found->second.page;
}

void Peers::add_own(int rank, Own own) {
  View& view = views_[static_cast<std::size_t>(rank)];
  view = {.arena = own.arena.address(), .signals = own.page.addresses()};
  own_.emplace(rank, std::move(own));
}

Checked<Peers::Own> Peers::make_own(const Device& device, std::int64_t arena_bytes,
                                    std::int32_t flags, std::int64_t granule) {
  HP_TRY(DeviceMemory arena, DeviceMemory::allocate(device, round_up(arena_bytes, granule)));
  HP_TRY(SignalPage page,
         SignalPage::create(device, flags, round_up(SignalAddresses::bytes_for(flags), granule)));
  return Own{.device = device, .arena = std::move(arena), .page = std::move(page)};
}

Checked<Peers> Peers::open(const std::shared_ptr<const DriverApi>& driver,
                           const PeersRequest& request) {
  HP_TRY(const std::vector<Device> devices, open_devices(driver, request.gpus));
  HP_REQUIRE_OK(make_all_peers(devices));
  const std::int64_t of_a_rank = request.arena_bytes + SignalAddresses::bytes_for(request.flags);
  for (const Device& device : devices) {
    const auto sharing = std::ranges::count(request.gpus, device.facts().id);
    HP_REQUIRE_OK(check_memory(device, of_a_rank * sharing));
  }
  Peers peers;
  peers.views_.resize(request.gpus.size());
  for (int rank = 0; rank < peers.ranks(); ++rank) {
    const DeviceId gpu = request.gpus[static_cast<std::size_t>(rank)];
    const auto device =
        std::ranges::find_if(devices, [&](const Device& each) { return each.facts().id == gpu; });
    HP_TRY(Own own, make_own(*device, request.arena_bytes, request.flags, 1));
    peers.add_own(rank, std::move(own));
  }
  return peers;
}

Checked<Peers> Peers::join(const std::shared_ptr<const DriverApi>& driver,
                           const OwnRankRequest& request, transport::Exchange& exchange) {
  Checked<Shared> made = make_shared(driver, request);
  if (!made.ok()) {
    // The others wait for this rank's handles, and learn why there are none.
    std::string failure = render_message(made.error());
    if (failure.size() == sizeof(Handles)) failure += ' ';
    static_cast<void>(exchange.all_gather(std::as_bytes(std::span(failure))));
    return std::move(made).error();
  }
  const auto blobs = exchange.all_gather(std::as_bytes(std::span(&made->handles, 1)));
  if (!blobs.ok()) return blobs.error();
  Peers peers;
  peers.views_.resize(blobs->size());
  const Device device = made->own.device;
  peers.add_own(exchange.rank(), std::move(made->own));
  HP_REQUIRE_OK(peers.import(device, *blobs, request));
  return peers;
}

Checked<Peers::Shared> Peers::make_shared(const std::shared_ptr<const DriverApi>& driver,
                                          const OwnRankRequest& request) {
  HP_TRY(const Device device, Device::open(driver, request.gpu));
  HP_REQUIRE_OK(check_memory(
      device, round_up(request.arena_bytes, kSharedGranule) +
                  round_up(SignalAddresses::bytes_for(request.flags), kSharedGranule)));
  HP_TRY(Own own, make_own(device, request.arena_bytes, request.flags, kSharedGranule));
  Handles handles{.arena_bytes = request.arena_bytes, .flags = request.flags};
  HP_TRY(handles.arena, export_memory(device, own.arena));
  HP_TRY(handles.page, export_memory(device, own.page.memory()));
  return Shared{.own = std::move(own), .handles = handles};
}

Checked<Ok> Peers::import(const Device& device, const std::vector<transport::Blob>& blobs,
                          const OwnRankRequest& request) {
  for (int rank = 0; rank < ranks(); ++rank) {
    if (is_own(rank)) continue;
    const transport::Blob& blob = blobs[static_cast<std::size_t>(rank)];
    Handles handles;
    if (blob.size() != sizeof(handles)) {
      const std::string reason(reinterpret_cast<const char*>(blob.data()), blob.size());
      return make_diag(DiagCode::N017, {{"rank", rank}, {"reason", reason}});
    }
    std::memcpy(&handles, blob.data(), sizeof(handles));
    if (handles.arena_bytes != request.arena_bytes || handles.flags != request.flags) {
      return make_diag(DiagCode::N015, {{"rank", rank}});
    }
    const auto open = [&](const CUipcMemHandle& handle) -> Checked<DeviceAddress> {
      auto memory = ImportedMemory::open(device, handle);
      if (!memory.ok()) {
        return with_note(memory.error(), "for memory of rank " + std::to_string(rank));
      }
      imports_.push_back(std::move(memory).value());
      return imports_.back().address();
    };
    View& view = views_[static_cast<std::size_t>(rank)];
    HP_TRY(view.arena, open(handles.arena));
    HP_TRY(view.signals.base, open(handles.page));
    view.signals.flags = handles.flags;
  }
  return Ok{};
}

Checked<Ok> Peers::leave(transport::Exchange& exchange) {
  const auto done = exchange.all_gather({});
  if (!done.ok()) return done.error();
  imports_.clear();
  const auto left = exchange.all_gather({});
  if (!left.ok()) return left.error();
  return Ok{};
}

}  // namespace harpe::cuda
