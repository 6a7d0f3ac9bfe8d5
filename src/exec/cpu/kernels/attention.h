#pragma once

#include <cstdint>

#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/mask_tables.h"
#include "ir/visibility.h"

namespace harpe {

// softmax(scale * q k^T) v of one head, into the state (o, lse): f32, or f64 for f64 operands.
// q[queries, head_dim], k[keys, head_dim], v[keys, value_dim], o[queries, value_dim], lse[queries].
struct AttentionProblem {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  MatrixView q;
  MatrixView k;
  MatrixView v;
  void* o = nullptr;
  std::int64_t o_row_stride = 0;
  void* lse = nullptr;
  std::int64_t lse_stride = 1;
  double scale = 1.0;
  bool carry = false;  // (o, lse) hold the state of other keys, to be combined with
  Visibility visible;  // of rows of k to rows of q
  MaskTables tables = {};
};

// o is normalised, lse the natural logarithm of the row's sum. A query that sees no key gets o = 0
// and lse = -inf, or under carry keeps what it had. What a query does not see never reaches it, NaN
// included. Requires: q, k, v of equal dtype among f16, bf16, f32, f64; o and lse overlap none of
// them. Keeps: as multiply.
void attend(const AttentionProblem& problem);

}  // namespace harpe
