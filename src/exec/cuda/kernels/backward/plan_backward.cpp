#include <algorithm>
#include <array>
#include <optional>
#include <variant>

#include "exec/cuda/kernels/attention/attention_operands.h"
#include "exec/cuda/kernels/backward/backward.h"
#include "exec/cuda/kernels/backward/backward_variants.h"
#include "exec/cuda/kernels/plain/plain_operands.h"

namespace harpe::cuda {
namespace {

constexpr std::array<std::size_t, 5> kOfQueries = {kBackwardQ, kDo, kLse, kDelta, kDq};
constexpr std::array<std::size_t, 4> kOfKeys = {kBackwardK, kBackwardV, kDk, kDv};

// Whether the loops that reduce are exactly those over heads that share keys.
bool sums_over_groups(const Loops<kBackwardOperands>& loops) {
  return std::ranges::all_of(loops, [](const actions::Loop<kBackwardOperands>& loop) {
    const bool shares =
        std::ranges::all_of(kOfKeys, [&](std::size_t i) { return loop.bytes[i] == 0; });
    return loop.length == 1 || shares == loop.reduces;
  });
}

// The band of keys that queries see; none if they also see other keys.
std::optional<Visibility> band_of(const AttentionBackwardProblem& p) {
  if (p.visible.prefix >= p.keys) return Visibility{};
  if (p.visible.prefix > 0) return std::nullopt;
  return p.visible;
}

BackwardSumSpec sums_of(const SumMatrix& sums, const actions::Loop<kBackwardOperands>& batch,
                        const actions::Loop<kBackwardOperands>& heads, BackwardOperand operand) {
  const MatrixView view{.data = sums.data, .dtype = DType::F32, .row_stride = sums.row_stride};
  return {.to = tensor_of(view, batch, heads, operand), .carry = sums.carry};
}

HeadTensor numbers_of(const RowValues& values, const actions::Loop<kBackwardOperands>& batch,
                      const actions::Loop<kBackwardOperands>& heads, BackwardOperand operand) {
  const MatrixView view{.data = values.data, .dtype = values.dtype, .row_stride = values.stride};
  return tensor_of(view, batch, heads, operand);
}

// Attention backward for tensor cores, if it supports these heads, this mask and these strides.
std::optional<BackwardSpec> fast_backward(const AttentionBackwardProblem& p,
                                          const Loops<kAllBackwardOperands>& all_loops) {
  Loops<kBackwardOperands> loops = first_operands<kBackwardOperands>(all_loops);
  const bool dense = std::ranges::all_of(std::array{p.q, p.k, p.v, p.d_o},
                                         [](const MatrixView& m) { return m.column_stride == 1; });
  const bool narrow = p.lse.dtype == DType::F32 && p.delta.dtype == DType::F32;
  const auto band = band_of(p);
  if (p.q.dtype != DType::BF16 || p.head_dim != p.value_dim || p.tables.any() || !dense ||
      !narrow || !band || !sums_over_groups(loops)) {
    return std::nullopt;
  }
  for (actions::Loop<kBackwardOperands>& loop : loops)
    loop.reduces = false;  // heads_of finds groups by their steps
  const auto heads = heads_of<kBackwardOperands>(joined(std::move(loops)), kOfQueries, kOfKeys);
  if (!heads) return std::nullopt;
  const auto& [batch, all, kv] = *heads;
  BackwardSpec spec;
  spec.batch = batch.length;
  spec.heads = all.length;
  spec.kv_heads = kv.length;
  spec.head_dim = p.head_dim;
  spec.queries = p.queries;
  spec.keys = p.keys;
  spec.q = tensor_of(p.q, batch, all, kBackwardQ);
  spec.k = tensor_of(p.k, batch, kv, kBackwardK);
  spec.v = tensor_of(p.v, batch, kv, kBackwardV);
  spec.d_o = tensor_of(p.d_o, batch, all, kDo);
  spec.lse = numbers_of(p.lse, batch, all, kLse);
  spec.delta = numbers_of(p.delta, batch, all, kDelta);
  spec.dq = sums_of(p.dq, batch, all, kDq);
  spec.dk = sums_of(p.dk, batch, kv, kDk);
  spec.dv = sums_of(p.dv, batch, kv, kDv);
  spec.scale = p.scale;
  spec.low = band->low;
  spec.high = band->high;
  if (!check(spec).ok()) return std::nullopt;
  return spec;
}

Checked<std::optional<LaunchSpecs>> plan_gradients(const LaunchChoice& choice,
                                                   const actions::Action& action) {
  const auto* const heads = std::get_if<actions::Differentiate>(&action);
  if (heads == nullptr) return std::optional<LaunchSpecs>();
  const AttentionBackwardProblem& p = heads->first;
  if (!number_of(p.q.dtype) || p.k.dtype != p.q.dtype || p.v.dtype != p.q.dtype ||
      p.d_o.dtype != p.q.dtype) {
    return std::optional<LaunchSpecs>();
  }
  if (const auto spec = fast_backward(p, heads->loops)) return std::optional(LaunchSpecs{*spec});
  if (choice.kernel.empty()) return std::optional<LaunchSpecs>();
  return no_leaf(choice, "it takes no operands of `" + std::string(print(p.q.dtype)) +
                             "`, not this mask, or not this layout of heads");
}

}  // namespace

KernelFamily backward_family() { return {.plan = plan_gradients, .variants = backward_variants}; }

}  // namespace harpe::cuda
