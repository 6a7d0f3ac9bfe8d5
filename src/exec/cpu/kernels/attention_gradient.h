#pragma once

#include <cstdint>

#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/mask_tables.h"
#include "ir/visibility.h"

namespace harpe {

// One number per row: f32 or f64.
struct RowValues {
  const void* data = nullptr;
  DType dtype = DType::F32;
  std::int64_t stride = 1;
};

// A row-major matrix of sums: f32, or f64 for f64 operands.
struct SumMatrix {
  void* data = nullptr;
  std::int64_t row_stride = 0;
  bool carry = false;  // it holds other contributions, to be added to
};

// The gradients of one head of attention: with p = e^(scale q k^T - lse) and s = p (do v^T -
// delta), dq = scale s k, dk = scale s^T q, dv = p^T do. q[queries, head_dim], k[keys, head_dim],
// v[keys, value_dim], d_o[queries, value_dim], lse and delta [queries], dq, dk, dv like q, k, v.
struct AttentionGradientProblem {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  MatrixView q;
  MatrixView k;
  MatrixView v;
  MatrixView d_o;
  RowValues lse;
  RowValues delta;
  SumMatrix dq;
  SumMatrix dk;
  SumMatrix dv;
  double scale = 1.0;
  Visibility visible;  // of rows of k to rows of q
  MaskTables tables = {};
};

// A query that sees no key, or whose lse is -inf, has no part in any gradient. What a query does
// not see never reaches it, and it never reaches what it does not see, NaN included.
// Requires: q, k, v, d_o of equal dtype among f16, bf16, f32, f64; results overlap no operand.
// Keeps: as multiply.
void differentiate_attention(const AttentionGradientProblem& problem);

}  // namespace harpe
