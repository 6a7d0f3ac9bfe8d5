#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/cuda/kernels/attention/head_tensor.h"
#include "exec/cuda/kernels/backward/device/backward_args.h"
#include "exec/cuda/kernels/backward/device/backward_config.h"
#include "exec/cuda/kernels/launch_spec.h"
#include "support/diag.h"

namespace harpe::cuda {

// f32, [batch, row, head, head_dim].
struct BackwardSumSpec {
  HeadTensor to;
  bool carry = false;  // `to` holds earlier contributions; the kernel adds to them
};

// Attention backward between one block of queries and one of keys. With
// p = e^(scale q k^T - lse) and s = p (do v^T - delta): dq = scale s k, dk = scale s^T q,
// dv = p^T do, for every head and batch entry; heads that share keys add to the same dk and dv.
// Query q sees key k iff low <= k - q <= high, both counted from the first rows in use. A query
// whose lse is -inf contributes nothing. Requires: addresses and strides of matrices are multiples
// of 16 bytes; those of lse and delta may be any. Operands are finite, since hidden pairs have
// weight 0 and 0·∞ would turn rows of the same tile into NaN. Results have the same bits every time
// on one kind of GPU.
struct BackwardSpec {
  std::int64_t batch = 1;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  // of queries, keys and values
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  device::Element element = device::Element::BF16;
  HeadTensor q;
  HeadTensor k;
  HeadTensor v;
  HeadTensor d_o;
  HeadTensor lse;    // f32, natural logarithm
  HeadTensor delta;  // f32
  BackwardSumSpec dq;
  BackwardSumSpec dk;
  BackwardSumSpec dv;
  double scale = 1;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Errors: G060 no kernel for these heads; G041 an address or stride that the kernel cannot read;
// G062 a count is out of range; G063 the scale.
[[nodiscard]] Checked<Ok> check(const BackwardSpec& spec);

// Everything that a launch needs, except encoded maps and the memory of its words.
struct BackwardPlan {
  device::BackwardConfig config;
  device::BackwardArgs args{};
  std::vector<TensorMapSpec> maps;  // of q, k, v, do and dq
  int blocks = 0;
  // Numbers of words for turns at dq, and at dk and dv. Words are zero before and after a launch.
  std::int64_t query_turns = 0;
  std::int64_t key_turns = 0;
};

// Plans a launch on `multiprocessors` SMs. Requires: check(spec) is ok.
[[nodiscard]] BackwardPlan plan_backward(const BackwardSpec& spec, int multiprocessors);

[[nodiscard]] std::unique_ptr<KernelLaunch> make_launch(BackwardSpec spec);

}  // namespace harpe::cuda
