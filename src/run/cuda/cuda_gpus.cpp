#include "run/cuda/cuda_gpus.h"

#include <utility>

#include "compile/certify_launches.h"
#include "exec/cuda/executor/cuda_executor.h"
#include "exec/cuda/group/join_group.h"
#include "exec/cuda/profile/measure.h"
#include "exec/cuda/runtime/free_memory.h"
#include "exec/cuda/runtime/host_memory.h"
#include "run/backend.h"

namespace harpe {

Checked<int> CudaGpus::count() const {
  HP_TRY(const std::shared_ptr<const cuda::DriverApi> driver, cuda::open_driver());
  return cuda::count_devices(*driver);
}

std::string CudaGpus::name() const {
  const auto driver = cuda::open_driver();
  if (!driver.ok()) return "";
  const Checked<std::string> name = cuda::name_of(**driver, cuda::DeviceId(0));
  return name.ok() ? *name : "";
}

Checked<std::unique_ptr<Executor>> CudaGpus::make_executor(const Plan& plan,
                                                           const BackendRequest& request) const {
  return make_cuda_executor(plan, {.share_gpus = request.share_gpus,
                                   .divide_gpus = request.divide_gpus,
                                   .kernel_cache = request.places.kernel_cache,
                                   .nvrtc = request.places.nvrtc,
                                   .cuda_folders = request.places.cuda_folders,
                                   .collectives = request.collectives,
                                   .library_folders = request.places.library_folders,
                                   .launch = request.launch,
                                   .network = {.provider = request.provider.value_or("shared"),
                                               .interface = request.interface},
                                   .wait_limit = request.wait_limit,
                                   .trace = request.trace,
                                   .warn = request.warn,
                                   .prove =
                                       [&plan](const launch::LaunchPlan& launches) {
                                         return prove_if_modelled(plan, launches);
                                       },
                                   .drop_signal_of = request.lose_at,
                                   .stray_at = request.stray_at,
                                   .delay_seed = request.delay_seed});
}

Checked<std::unique_ptr<RankGroup>> CudaGpus::join_group(const GroupRequest& request, int gpu,
                                                         const CudaPlaces& places) const {
  return cuda::join_group(request, {.gpu = gpu,
                                    .kernel_cache = places.kernel_cache,
                                    .nvrtc = places.nvrtc,
                                    .cuda_folders = places.cuda_folders,
                                    .library_folders = places.library_folders,
                                    .prove = prove_if_modelled});
}

Checked<FreeMemory> CudaGpus::watch_memory(int gpus) const {
  HP_TRY(const std::shared_ptr<const cuda::DriverApi> driver, cuda::open_driver());
  HP_TRY(cuda::FreeMemory memory, cuda::FreeMemory::watch(driver, gpus));
  return FreeMemory([memory = std::move(memory)] {
    const Checked<std::vector<std::int64_t>> read = memory.read();
    return read.ok() ? *read : std::vector<std::int64_t>();
  });
}

std::shared_ptr<const void> CudaGpus::pin(const TensorMap& tensors) const {
  const auto driver = cuda::open_driver();
  if (!driver.ok()) return nullptr;
  const Checked<cuda::Device> device = cuda::Device::open(*driver, cuda::DeviceId(0));
  if (!device.ok()) return nullptr;
  const auto pieces = std::make_shared<std::vector<cuda::PinnedMemory>>();
  for (const auto& [name, tensor] : tensors) {
    if (tensor.data.size() < cuda::kLeastPinned) continue;
    Checked<cuda::PinnedMemory> piece = cuda::PinnedMemory::pin(*device, tensor.data);
    if (piece.ok()) pieces->push_back(std::move(piece).value());
  }
  return pieces;
}

Checked<cuda::profile::GpuFigures> CudaGpus::measure(const GpuProfileRequest& request) const {
  return cuda::profile::measure_gpus({.crew = {.gpus = static_cast<int>(request.gpus),
                                               .kernel_cache = request.places.kernel_cache,
                                               .nvrtc = request.places.nvrtc,
                                               .cuda_folders = request.places.cuda_folders},
                                      .library_folders = request.places.library_folders,
                                      .quick = request.quick,
                                      .progress = request.progress});
}

}  // namespace harpe
