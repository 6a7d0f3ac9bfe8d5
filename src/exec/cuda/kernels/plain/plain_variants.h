#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/jit/kernel_variant.h"

namespace harpe::cuda {

// Kernels that take any strides and types; see device/plain_args.h and route_args.h.
enum class PlainKernel : std::uint8_t {
  Move,
  Map,
  Sum,
  Combine,
  Join,
  RowDot,
  AddRmsNorm,
  Gemm,
  Attention,
  Backward,
  ChooseExperts,
  LimitChoices,
  GatherRows,
  CombineRows
};

// `wide`: computes in f64, else in f32; false for kernels that have one version only.
[[nodiscard]] KernelVariant plain_variant(PlainKernel kernel, bool wide);

[[nodiscard]] std::vector<KernelVariant> plain_variants();

}  // namespace harpe::cuda
