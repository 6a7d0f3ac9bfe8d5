#include "exec/cuda/runtime/free_memory.h"

#include "exec/cuda/runtime/current_device.h"

namespace harpe::cuda {

Checked<FreeMemory> FreeMemory::watch(const std::shared_ptr<const DriverApi>& driver, int gpus) {
  FreeMemory memory;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    HP_TRY(Device device, Device::open(driver, DeviceId(gpu)));
    memory.devices_.push_back(std::move(device));
  }
  return memory;
}

Checked<std::vector<std::int64_t>> FreeMemory::read() const {
  std::vector<std::int64_t> all;
  for (const Device& device : devices_) {
    const CurrentDevice current(device);
    std::size_t free = 0;
    std::size_t total = 0;
    HP_REQUIRE_OK(
        driver_call(device.driver(), "cuMemGetInfo", device.driver().cuMemGetInfo(&free, &total)));
    all.push_back(static_cast<std::int64_t>(free));
  }
  return all;
}

}  // namespace harpe::cuda
