#include "exec/cuda/runtime/device.h"

#include <array>

#include "exec/cuda/runtime/gpu_parts.h"

namespace harpe::cuda {
namespace {

Checked<int> attribute(const DriverApi& driver, CUdevice handle, CUdevice_attribute which) {
  int value = 0;
  HP_REQUIRE_OK(driver_call(driver, "cuDeviceGetAttribute",
                            driver.cuDeviceGetAttribute(&value, which, handle)));
  return value;
}

Checked<std::string> name_of(const DriverApi& driver, CUdevice handle) {
  std::array<char, 256> name{};
  HP_REQUIRE_OK(
      driver_call(driver, "cuDeviceGetName",
                  driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()), handle)));
  return std::string(name.data());
}

Checked<DeviceFacts> facts_of(const DriverApi& driver, DeviceId id, CUdevice handle) {
  HP_TRY(std::string name, name_of(driver, handle));
  std::size_t memory = 0;
  HP_REQUIRE_OK(driver_call(driver, "cuDeviceTotalMem", driver.cuDeviceTotalMem(&memory, handle)));
  DeviceFacts facts{.id = id, .name = std::move(name)};
  facts.memory_bytes = static_cast<std::int64_t>(memory);
  HP_TRY(facts.compute_major,
         attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  HP_TRY(facts.compute_minor,
         attribute(driver, handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  HP_TRY(facts.multiprocessors,
         attribute(driver, handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  HP_TRY(facts.cache_bytes, attribute(driver, handle, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  HP_TRY(facts.shared_bytes,
         attribute(driver, handle, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  return facts;
}

}  // namespace

Checked<int> count_devices(const DriverApi& driver) {
  int count = 0;
  HP_REQUIRE_OK(driver_call(driver, "cuDeviceGetCount", driver.cuDeviceGetCount(&count)));
  return count;
}

Checked<std::string> name_of(const DriverApi& driver, DeviceId id) {
  CUdevice handle{};
  HP_REQUIRE_OK(driver_call(driver, "cuDeviceGet", driver.cuDeviceGet(&handle, id.value)));
  return name_of(driver, handle);
}

Checked<Device> Device::open(std::shared_ptr<const DriverApi> driver, DeviceId id) {
  HP_TRY(const int count, count_devices(*driver));
  if (id.value < 0 || id.value >= count) {
    return make_diag(DiagCode::G007, {{"ordinal", id.value}, {"count", count}});
  }
  CUdevice handle{};
  HP_REQUIRE_OK(driver_call(*driver, "cuDeviceGet", driver->cuDeviceGet(&handle, id.value)));
  HP_TRY(DeviceFacts facts, facts_of(*driver, id, handle));
  if (facts.compute_major != 9 || facts.compute_minor != 0) {
    const std::string found =
        std::to_string(facts.compute_major) + "." + std::to_string(facts.compute_minor);
    return make_diag(DiagCode::G006, {{"what", facts.name}, {"found", found}});
  }
  CUcontext raw = nullptr;
  const Result<Ok, CudaError> retained = cuda_call(*driver, "cuDevicePrimaryCtxRetain",
                                                   driver->cuDevicePrimaryCtxRetain(&raw, handle));
  if (!retained.ok()) return to_diag(retained.error(), id.value, "a process more");
  const std::shared_ptr<CUctx_st> context(
      raw, [driver, handle](CUcontext) { driver->cuDevicePrimaryCtxRelease(handle); });
  Device device(std::move(driver), context, std::move(facts));
  const Result<Ok, CudaError> current = device.make_current();
  if (!current.ok()) return to_diag(current.error());
  return device;
}

Checked<Device> Device::open(std::shared_ptr<const DriverApi> driver, const GpuPart& part) {
  HP_TRY(Device device, open(std::move(driver), part.gpu));
  if (part.parts == 1) return device;
  HP_TRY(const PartContext own, open_part(*device.driver_, part));
  device.context_ = own.context;
  device.facts_.multiprocessors = own.multiprocessors;
  const Result<Ok, CudaError> current = device.make_current();
  if (!current.ok()) return to_diag(current.error());
  return device;
}

Result<Ok, CudaError> Device::make_current() const {
  return cuda_call(*driver_, "cuCtxSetCurrent", driver_->cuCtxSetCurrent(context_));
}

Checked<Ok> Device::reach(const Device& peer) const {
  CUdevice from = 0;
  CUdevice to = 0;
  int can = 0;
  HP_REQUIRE_OK(driver_call(*driver_, "cuDeviceGet", driver_->cuDeviceGet(&from, facts_.id.value)));
  HP_REQUIRE_OK(
      driver_call(*driver_, "cuDeviceGet", driver_->cuDeviceGet(&to, peer.facts().id.value)));
  HP_REQUIRE_OK(driver_call(*driver_, "cuDeviceCanAccessPeer",
                            driver_->cuDeviceCanAccessPeer(&can, from, to)));
  if (can == 0) {
    return make_diag(DiagCode::G071, {{"one", facts_.id.value}, {"other", peer.facts().id.value}});
  }
  HP_REQUIRE_OK(driver_call(*driver_, "cuCtxSetCurrent", driver_->cuCtxSetCurrent(primary_.get())));
  const CUresult status = driver_->cuCtxEnablePeerAccess(peer.primary_.get(), 0);
  if (status == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return Ok{};
  return driver_call(*driver_, "cuCtxEnablePeerAccess", status);
}

}  // namespace harpe::cuda
