#include "exec/cuda/peers.h"

#include <algorithm>
#include <string>

#include "exec/cuda/current_device.h"

namespace harpe::cuda {
namespace {

Diag cannot_reach(DeviceId one, DeviceId other) {
  return make_diag(DiagCode::G005, {{"call", "cuDeviceCanAccessPeer"},
                                    {"name", "no peers"},
                                    {"reason", "GPU " + std::to_string(one.value) +
                                                   " cannot reach the memory of GPU " +
                                                   std::to_string(other.value)}});
}

constexpr std::int64_t kMebibyte = 1024 * 1024;

Diag too_little_memory(DeviceId gpu, std::int64_t free, std::int64_t needed) {
  return make_diag(
      DiagCode::G005,
      {{"call", "cuMemGetInfo"},
       {"name", "too little memory"},
       {"reason", "GPU " + std::to_string(gpu.value) + " has " + std::to_string(free / kMebibyte) +
                      " MiB free, and " + std::to_string((needed + kMebibyte - 1) / kMebibyte) +
                      " MiB are needed there"}});
}

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
  if (can == 0) return cannot_reach(one.facts().id, other.facts().id);
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
  if (needed <= static_cast<std::int64_t>(free)) return Ok{};
  return too_little_memory(device.facts().id, static_cast<std::int64_t>(free), needed);
}

}  // namespace

Checked<Peers> Peers::open(const std::shared_ptr<const DriverApi>& driver,
                           const PeersRequest& request) {
  HP_TRY(const std::vector<Device> devices, open_devices(driver, request.gpus));
  HP_REQUIRE_OK(make_all_peers(devices));
  const std::int64_t of_a_rank = request.arena_bytes + SignalAddresses::bytes_for(request.flags);
  for (const Device& device : devices) {
    const auto sharing = std::ranges::count(request.gpus, device.facts().id);
    HP_REQUIRE_OK(check_memory(device, of_a_rank * sharing));
  }
  std::vector<Rank> ranks;
  for (const DeviceId gpu : request.gpus) {
    const auto device =
        std::ranges::find_if(devices, [&](const Device& each) { return each.facts().id == gpu; });
    HP_TRY(DeviceMemory arena, DeviceMemory::allocate(*device, request.arena_bytes));
    HP_TRY(SignalPage page, SignalPage::create(*device, request.flags));
    ranks.push_back({.device = *device, .arena = std::move(arena), .page = std::move(page)});
  }
  return Peers(std::move(ranks));
}

}  // namespace harpe::cuda
