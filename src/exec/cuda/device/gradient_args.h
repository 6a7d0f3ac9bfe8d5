#pragma once

#include "exec/cuda/device/attention_args.h"
#include "exec/cuda/device/gradient_walk.h"

// What a kernel of attention's gradients is launched with. Host and device.
namespace harpe::device {

// One number per query, [batch, head, row].
struct RowNumbers {
  const float* data;
  AttentionStrides strides;
};

// [batch, row, head, head_dim]; rows begin at multiples of 16 bytes.
struct GradientSums {
  float* data;
  AttentionStrides strides;
  bool carry;  // holds other contributions, to be added to
};

// With p = 2^(scale_log2 q k^T - lse log2(e)) and s = p (do v^T - delta): dq += scale s k,
// dk += scale s^T q, dv += p^T do. Maps are query_dim, heads, rows, batch; boxes of 64 columns by
// kGradientBoxRows rows. Blocks of keys come before those of queries; the `key_parts` blocks that
// make the same keys are a cluster.
struct GradientArgs {
  TensorMap q;
  TensorMap k;
  TensorMap v;
  TensorMap d_o;
  RowNumbers lse;  // natural logarithm; -inf: the query sees nothing
  RowNumbers delta;
  GradientSums dq;
  GradientSums dk;
  GradientSums dv;
  GradientRows keys;
  GradientRows queries;
  int heads_per_kv_head;
  int key_parts;
  float scale;
  float scale_log2;  // scale x log2(e), positive
};

}  // namespace harpe::device
