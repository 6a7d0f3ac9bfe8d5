#pragma once

#include <memory>

#include "exec/cuda/kernels/launch_spec.h"
#include "exec/cuda/library/nccl_call.h"

namespace harpe::library {

// A launch of this rank's part of a collective.
[[nodiscard]] std::unique_ptr<cuda::KernelLaunch> make_launch(NcclCall call);

}  // namespace harpe::library
