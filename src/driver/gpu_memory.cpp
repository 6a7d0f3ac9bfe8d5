#include "driver/gpu_memory.h"

#include "driver/options.h"
#ifdef HARPE_WITH_CUDA
#include "exec/cuda/free_memory.h"
#endif

namespace harpe {

#ifdef HARPE_WITH_CUDA

struct GpuMemory::State {
  cuda::FreeMemory memory;
};

Checked<GpuMemory> GpuMemory::watch(int gpus) {
  prepare_cuda_environment();
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

#else

struct GpuMemory::State {};

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
