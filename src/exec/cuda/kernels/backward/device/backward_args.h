#pragma once

#include "exec/cuda/kernels/attention/device/attention_args.h"
#include "exec/cuda/kernels/backward/device/backward_walk.h"

// The arguments of attention backward, for host and device.
namespace harpe::device {

// One number per query, [batch, head, row].
struct RowNumbers {
  const float* data;
  AttentionStrides strides;
};

// [batch, row, head, head_dim]; rows begin at multiples of 16 bytes.
struct BackwardSums {
  float* data;
  AttentionStrides strides;
  bool carry;  // `data` holds earlier contributions; the kernel adds to them
};

// With p = 2^(scale_log2 q k^T - lse log2(e)) and s = p (do v^T - delta): dq += scale s k,
// dk += scale s^T q, dv += p^T do. Maps are query_dim, heads, rows, batch; boxes of 128 bytes by
// 64 rows.
struct BackwardArgs {
  TensorMap q;
  TensorMap k;
  TensorMap v;
  TensorMap d_o;
  TensorMap dq;    // f32
  RowNumbers lse;  // natural logarithm; -inf: the query sees nothing
  RowNumbers delta;
  BackwardSums dk;
  BackwardSums dv;
  BackwardGrid grid;
  // The ticket and all turns are 0 before and after a launch.
  std::uint32_t* ticket;
  std::uint32_t* query_turns;  // [batch, head, query tile]: key tiles that have added to dq
  std::uint32_t* key_turns;    // [slice, place]: parts of a key tile that have added to dk and dv
  bool carry_dq;               // dq holds earlier contributions; the kernel adds to them
  float scale;
  float scale_log2;  // scale x log2(e), positive
};

}  // namespace harpe::device
