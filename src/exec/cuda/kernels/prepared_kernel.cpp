#include "exec/cuda/kernels/prepared_kernel.h"

#include <array>

#include "support/check.h"

namespace harpe::cuda {

// Null if the launch is not of the folder.
using Prepare = Checked<std::unique_ptr<PreparedKernel>> (*)(const KernelLaunch& launch,
                                                             const LaunchTools& tools);
#define HP_KERNELS(FOLDER)                                                              \
  Checked<std::unique_ptr<PreparedKernel>> prepare_##FOLDER(const KernelLaunch& launch, \
                                                            const LaunchTools& tools);
#include "exec/cuda/kernels/kernels.def"
HP_KERNELS(nccl)
#undef HP_KERNELS

Checked<std::unique_ptr<PreparedKernel>> prepare(const KernelLaunch& launch,
                                                 const LaunchTools& tools) {
  static constexpr auto kFolders = std::to_array<Prepare>({
#define HP_KERNELS(FOLDER) prepare_##FOLDER,
#include "exec/cuda/kernels/kernels.def"
      HP_KERNELS(nccl)
#undef HP_KERNELS
  });
  for (const Prepare of_folder : kFolders) {
    HP_TRY(std::unique_ptr<PreparedKernel> prepared, of_folder(launch, tools));
    if (prepared != nullptr) return prepared;
  }
  HP_CHECK(false, "no folder has `" + std::string(launch.name()) + "`");
}

}  // namespace harpe::cuda
