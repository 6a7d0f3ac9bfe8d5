#include "exec/cuda/runtime/device_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "exec/cuda/runtime/current_device.h"

namespace harpe::cuda {

Checked<DeviceMemory> DeviceMemory::allocate(const Device& device, std::int64_t bytes) {
  const CurrentDevice current(device);
  CUdeviceptr address = 0;
  const Result<Ok, CudaError> made =
      cuda_call(device.driver(), "cuMemAlloc",
                device.driver().cuMemAlloc(&address, static_cast<std::size_t>(bytes)));
  if (!made.ok()) {
    return to_diag(made.error(), device.facts().id.value, std::to_string(bytes) + " bytes");
  }
  return DeviceMemory(device, address, bytes);
}

Checked<DeviceMemory> DeviceMemory::zeros(const Device& device, std::int64_t words) {
  return filled(device, words, 0);
}

Checked<DeviceMemory> DeviceMemory::filled(const Device& device, std::int64_t words,
                                           std::uint32_t value) {
  HP_TRY(DeviceMemory memory, allocate(device, words * 4));
  const CurrentDevice current(device);
  const DriverApi& driver = device.driver();
  HP_REQUIRE_OK(driver_call(
      driver, "cuMemsetD32Async",
      driver.cuMemsetD32Async(memory.address(), value, static_cast<std::size_t>(words), nullptr)));
  HP_REQUIRE_OK(driver_call(driver, "cuStreamSynchronize", driver.cuStreamSynchronize(nullptr)));
  return memory;
}

Checked<DeviceMemory> DeviceMemory::copy_of(const Device& device,
                                            std::span<const std::byte> bytes) {
  HP_TRY(DeviceMemory memory, allocate(device, static_cast<std::int64_t>(bytes.size())));
  const CurrentDevice current(device);
  const DriverApi& driver = device.driver();
  HP_REQUIRE_OK(
      driver_call(driver, "cuMemcpyHtoDAsync",
                  driver.cuMemcpyHtoDAsync(memory.address(), bytes.data(), bytes.size(), nullptr)));
  HP_REQUIRE_OK(driver_call(driver, "cuStreamSynchronize", driver.cuStreamSynchronize(nullptr)));
  return memory;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : device_(other.device_),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (address_ == 0) return;
  const CurrentDevice current(device_);
  device_.driver().cuMemFree(address_);
  device_.note_allocated(-bytes_);
}

Checked<MappedMemory> MappedMemory::allocate(const Device& device, std::int64_t bytes) {
  const CurrentDevice current(device);
  const DriverApi& driver = device.driver();
  void* host = nullptr;
  HP_REQUIRE_OK(
      driver_call(driver, "cuMemHostAlloc",
                  driver.cuMemHostAlloc(&host, static_cast<std::size_t>(bytes),
                                        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)));
  const std::span span(static_cast<std::byte*>(host), static_cast<std::size_t>(bytes));
  MappedMemory memory(device, span, 0);
  CUdeviceptr address = 0;
  HP_REQUIRE_OK(driver_call(driver, "cuMemHostGetDevicePointer",
                            driver.cuMemHostGetDevicePointer(&address, host, 0)));
  memory.address_ = address;
  std::ranges::fill(span, std::byte{0});
  return memory;
}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : device_(other.device_),
      host_(std::exchange(other.host_, {})),
      address_(std::exchange(other.address_, 0)) {}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(host_, other.host_);
  std::swap(address_, other.address_);
  return *this;
}

MappedMemory::~MappedMemory() {
  if (host_.empty()) return;
  const CurrentDevice current(device_);
  device_.driver().cuMemFreeHost(host_.data());
}

Checked<Stream> Stream::create(const Device& device, bool is_urgent) {
  const CurrentDevice current(device);
  // Lower numbers are more urgent; the driver clamps values out of range.
  constexpr int kMostUrgent = -5;
  CUstream handle = nullptr;
  HP_REQUIRE_OK(driver_call(device.driver(), "cuStreamCreateWithPriority",
                            device.driver().cuStreamCreateWithPriority(
                                &handle, CU_STREAM_NON_BLOCKING, is_urgent ? kMostUrgent : 0)));
  return Stream(device, handle);
}

Stream::Stream(Stream&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Stream::~Stream() {
  if (handle_ != nullptr) device_.driver().cuStreamDestroy(handle_);
}

Result<Ok, CudaError> Stream::synchronize() const {
  return cuda_call(device_.driver(), "cuStreamSynchronize",
                   device_.driver().cuStreamSynchronize(handle_));
}

Result<Ok, CudaError> Stream::wait_for(const Event& event) const {
  return cuda_call(device_.driver(), "cuStreamWaitEvent",
                   device_.driver().cuStreamWaitEvent(handle_, event.handle(), 0));
}

Checked<Event> Event::create(const Device& device) { return create_with(device, CU_EVENT_DEFAULT); }

Checked<Event> Event::create_untimed(const Device& device) {
  return create_with(device, CU_EVENT_DISABLE_TIMING);
}

Checked<Event> Event::create_with(const Device& device, unsigned flags) {
  const CurrentDevice current(device);
  CUevent handle = nullptr;
  HP_REQUIRE_OK(
      driver_call(device.driver(), "cuEventCreate", device.driver().cuEventCreate(&handle, flags)));
  return Event(device, handle);
}

Event::Event(Event&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (handle_ != nullptr) device_.driver().cuEventDestroy(handle_);
}

Result<Ok, CudaError> Event::record(const Stream& stream) const {
  return cuda_call(device_.driver(), "cuEventRecord",
                   device_.driver().cuEventRecord(handle_, stream.handle()));
}

Result<double, CudaError> Event::milliseconds_since(const Event& start) const {
  float milliseconds = 0;
  HP_REQUIRE_OK(
      cuda_call(device_.driver(), "cuEventElapsedTime",
                device_.driver().cuEventElapsedTime(&milliseconds, start.handle_, handle_)));
  return static_cast<double>(milliseconds);
}

}  // namespace harpe::cuda
