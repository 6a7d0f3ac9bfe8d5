#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exec/cuda/executor/cuda_executor.h"
#include "exec/cuda/runtime/device.h"

namespace harpe::test {

// An executor for a plan of a few ranks that share the GPUs of this machine. All executors of this
// program share one kernel folder: HARPE_TEST_KERNEL_CACHE, or else a temporary one.
[[nodiscard]] Checked<std::unique_ptr<Executor>> make_test_executor(const Plan& plan,
                                                                    CudaOptions options = {});

// The folder of compiled kernels.
[[nodiscard]] const std::string& kernel_folder();

// The reason why this machine cannot run GPU tests, if any. Keeps the first GPU's context open.
[[nodiscard]] std::optional<std::string> missing_for_gpus();

}  // namespace harpe::test
