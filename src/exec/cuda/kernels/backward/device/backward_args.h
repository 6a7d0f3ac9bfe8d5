#pragma once

#include "exec/cuda/kernels/attention/device/attention_args.h"
#include "exec/cuda/kernels/backward/device/backward_walk.h"

// What a kernel of attention's gradients is launched with. Host and device.
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
  bool carry;  // holds other contributions, to be added to
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
  // All of these are 0 when a launch begins, and when it is over.
  std::uint32_t* ticket;
  std::uint32_t* query_turns;  // how many have added: batch, head, tile of queries
  std::uint32_t* key_turns;    // slice, place: parts of a tile of keys
  bool carry_dq;               // dq holds other contributions, to be added to
  float scale;
  float scale_log2;  // scale x log2(e), positive
};

}  // namespace harpe::device
