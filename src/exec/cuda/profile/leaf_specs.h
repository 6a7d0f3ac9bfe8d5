#pragma once

#include <vector>

#include "exec/cuda/profile/figures.h"
#include "exec/cuda/profile/orders.h"
#include "leaves/leaf.h"

namespace harpe::cuda::profile {

// Addresses of a leaf's operands, which are contiguous, and of its result.
struct Operands {
  DeviceAddress in = 0;
  DeviceAddress out = 0;
};

// One leaf of one shape, as launches of a plan.
struct LeafCase {
  LeafFigure figure;  // without its time
  std::int64_t in_bytes = 0;
  std::int64_t out_bytes = 0;
  double guess = 0;  // expected seconds
  std::function<Checked<LaunchSpecs>(const Member&, const Operands&)> plan;
};

// A GEMM of bf16, all dense and row-major.
struct GemmSize {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
};
[[nodiscard]] LaunchSpec gemm_spec(const Operands& at, const GemmSize& shape);

// Whole heads, all dense: [batch, row, head, dim].
struct HeadsShape {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t dim = 128;
  std::int64_t value_dim = 128;
  bool causal = false;
};

// With the kernels for tensor cores, in bf16.
[[nodiscard]] LeafCase gemm_case(const GemmSize& shape);
[[nodiscard]] LeafCase attention_case(const HeadsShape& shape);
// With the plain kernels, in any floating type; `heads` with separate keys, of dimension `dim`.
[[nodiscard]] LeafCase plain_gemm_case(DType dtype, const GemmSize& shape);
[[nodiscard]] LeafCase plain_attention_case(DType dtype, const HeadsShape& shape);
[[nodiscard]] LeafCase backward_case(DType dtype, const HeadsShape& shape);
[[nodiscard]] LeafCase pointwise_case(Pointwise function, Leaf leaf, std::int64_t length);
[[nodiscard]] LeafCase row_dot_case(std::int64_t rows, std::int64_t length);

}  // namespace harpe::cuda::profile
