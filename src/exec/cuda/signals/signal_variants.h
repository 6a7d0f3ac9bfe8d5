#pragma once

#include <vector>

#include "exec/cuda/jit/kernel_variant.h"

namespace harpe::cuda {

// Kernels of one warp, arguments in device/signal_args.h, post_args.h and clock_args.h.
[[nodiscard]] KernelVariant turn_variant();
[[nodiscard]] KernelVariant raise_variant();
[[nodiscard]] KernelVariant await_variant();
[[nodiscard]] KernelVariant post_variant();
[[nodiscard]] KernelVariant linger_variant();
[[nodiscard]] KernelVariant stray_variant();
[[nodiscard]] KernelVariant stamp_variant();
[[nodiscard]] KernelVariant answer_clock_variant();

[[nodiscard]] std::vector<KernelVariant> signal_variants();

}  // namespace harpe::cuda
