#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exec/cuda/executor/cuda_executor.h"
#include "exec/cuda/runtime/device.h"

namespace harpe::test {

// For plans of a few ranks, which share the GPUs there are; kernels are compiled once for all
// executors of this program, into the folder that HARPE_TEST_KERNEL_CACHE names or one of its own.
[[nodiscard]] Checked<std::unique_ptr<Executor>> make_test_executor(const Plan& plan,
                                                                    CudaOptions options = {});

// Where they are compiled to.
[[nodiscard]] const std::string& kernel_folder();

// How many GPUs there are; 0 where nothing runs on them.
[[nodiscard]] int count_gpus();

// Why nothing runs on GPUs here, where that is so. Keeps the first GPU's context from there on.
[[nodiscard]] std::optional<std::string> missing_for_gpus();

}  // namespace harpe::test
