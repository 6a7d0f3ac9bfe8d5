#include "driver/gpu_memory.h"

#ifdef HARPE_WITH_CUDA
#include "exec/cuda/free_memory.h"
#include "exec/cuda/host_memory.h"
#endif

namespace harpe {

#ifdef HARPE_WITH_CUDA

struct GpuMemory::State {
  cuda::FreeMemory memory;
};

Checked<GpuMemory> GpuMemory::watch(int gpus) {
  HP_TRY(const std::shared_ptr<const cuda::DriverApi> driver, cuda::open_driver());
  HP_TRY(cuda::FreeMemory memory, cuda::FreeMemory::watch(driver, gpus));
  GpuMemory watched;
  watched.state_ = std::make_shared<State>(State{std::move(memory)});
  return watched;
}

std::vector<std::int64_t> GpuMemory::free() const {
  const Checked<std::vector<std::int64_t>> read = state_->memory.read();
  return read.ok() ? *read : std::vector<std::int64_t>();
}

struct PinnedTensors::State {
  std::vector<cuda::PinnedMemory> pieces;
};

PinnedTensors PinnedTensors::pin(const TensorMap& tensors) {
  PinnedTensors pinned;
  const auto driver = cuda::open_driver();
  if (!driver.ok()) return pinned;
  const Checked<cuda::Device> device = cuda::Device::open(*driver, cuda::DeviceId(0));
  if (!device.ok()) return pinned;
  pinned.state_ = std::make_shared<State>();
  for (const auto& [name, tensor] : tensors) {
    if (tensor.data.size() < cuda::kLeastPinned) continue;
    Checked<cuda::PinnedMemory> piece = cuda::PinnedMemory::pin(*device, tensor.data);
    if (piece.ok()) pinned.state_->pieces.push_back(std::move(piece).value());
  }
  return pinned;
}

#else

struct GpuMemory::State {};
struct PinnedTensors::State {};

PinnedTensors PinnedTensors::pin(const TensorMap&) { return {}; }

Checked<GpuMemory> GpuMemory::watch(int) { return make_diag(DiagCode::G001, {}); }

std::vector<std::int64_t> GpuMemory::free() const { return {}; }

#endif

void add_taken(const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
               std::vector<std::int64_t>& taken) {
  if (before.size() != after.size()) return;
  taken.resize(before.size(), 0);
  for (std::size_t gpu = 0; gpu < before.size(); ++gpu) taken[gpu] += before[gpu] - after[gpu];
}

}  // namespace harpe
