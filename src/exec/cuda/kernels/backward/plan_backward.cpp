#include <algorithm>
#include <array>
#include <optional>

#include "exec/cuda/kernels/attention/attention_operands.h"

namespace harpe::cuda {
namespace {

// Operands of Differentiate's loops, but for the mask's tables.
enum BackwardOperand : std::uint8_t {
  kBackwardQ,
  kBackwardK,
  kBackwardV,
  kDo,
  kLse,
  kDelta,
  kDq,
  kDk,
  kDv,
  kBackwardOperands
};
constexpr std::size_t kAllBackwardOperands = kBackwardOperands + actions::kMaskTables;
constexpr std::array<std::size_t, 5> kOfQueries = {kBackwardQ, kDo, kLse, kDelta, kDq};
constexpr std::array<std::size_t, 4> kOfKeys = {kBackwardK, kBackwardV, kDk, kDv};

// Whether the turns that are summed up are those of heads that share keys, and no others.
bool sums_over_groups(const Loops<kBackwardOperands>& loops) {
  return std::ranges::all_of(loops, [](const actions::Loop<kBackwardOperands>& loop) {
    const bool shares =
        std::ranges::all_of(kOfKeys, [&](std::size_t i) { return loop.bytes[i] == 0; });
    return loop.length == 1 || shares == loop.reduces;
  });
}

// The band of keys that queries see; none where it is not all that they see.
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

// Gradients for tensor cores, where heads, mask and strides are such as they take.
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
    loop.reduces = false;  // groups show by their steps
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

device::PlainValues plain_values(const RowValues& values) {
  return {.data = values.data,
          .number = values.dtype == DType::F64 ? device::Number::F64 : device::Number::F32,
          .stride = values.stride};
}

device::PlainSums plain_sums(const SumMatrix& sums) {
  return {.data = sums.data, .row_stride = sums.row_stride, .carry = sums.carry};
}

device::PlainBackwardArgs plain_backward(const AttentionBackwardProblem& p, device::Number number) {
  device::PlainBackwardArgs args{};
  args.q = plain(p.q, number);
  args.k = plain(p.k, number);
  args.v = plain(p.v, number);
  args.d_o = plain(p.d_o, number);
  args.lse = plain_values(p.lse);
  args.delta = plain_values(p.delta);
  args.dq = plain_sums(p.dq);
  args.dk = plain_sums(p.dk);
  args.dv = plain_sums(p.dv);
  args.queries = p.queries;
  args.keys = p.keys;
  args.head_dim = p.head_dim;
  args.value_dim = p.value_dim;
  args.scale = p.scale;
  args.mask = plain(p.visible);
  return args;
}

void move_operands(device::PlainBackwardArgs& args, const AttentionBackwardProblem& p,
                   const std::array<std::int64_t, kAllBackwardOperands>& offsets) {
  args.q.data = moved(p.q.data, offsets[kBackwardQ]);
  args.k.data = moved(p.k.data, offsets[kBackwardK]);
  args.v.data = moved(p.v.data, offsets[kBackwardV]);
  args.d_o.data = moved(p.d_o.data, offsets[kDo]);
  args.lse.data = moved(p.lse.data, offsets[kLse]);
  args.delta.data = moved(p.delta.data, offsets[kDelta]);
  args.dq.data = moved(p.dq.data, offsets[kDq]);
  args.dk.data = moved(p.dk.data, offsets[kDk]);
  args.dv.data = moved(p.dv.data, offsets[kDv]);
  args.tables = tables_of(p.tables, std::span(offsets).last<actions::kMaskTables>());
}

// Blocks that make a result of so many rows and columns, a turn.
std::int64_t blocks_of(std::int64_t rows, std::int64_t columns) {
  return divide_up(rows, device::kPlainRows) * divide_up(columns, device::kPlainSlice);
}

}  // namespace

Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                      const actions::Differentiate& heads) {
  std::vector<LaunchSpec> launches;
  const AttentionBackwardProblem& p = heads.first;
  const auto number = number_of(p.q.dtype);
  if (!number || p.k.dtype != p.q.dtype || p.v.dtype != p.q.dtype || p.d_o.dtype != p.q.dtype) {
    return no_kernel(choice, "gradients of `" + std::string(print(p.q.dtype)) + "`");
  }
  if (const auto spec = fast_backward(p, heads.loops)) return std::vector<LaunchSpec>{*spec};
  if (!choice.kernel.empty()) {
    return no_leaf(choice, "gradients of `" + std::string(print(p.q.dtype)) +
                               "`, their mask, or heads that lie as they do");
  }
  const Loops<kAllBackwardOperands> loops = joined(heads.loops);
  device::PlainBackwardArgs args = plain_backward(p, *number);
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops, [&](const auto& offsets, const auto& inner) {
        move_operands(args, p, offsets);
        args.nest = nest_of(inner);
        const auto kept = static_cast<std::size_t>(args.nest.kept);
        args.turns = turns_of(inner.first(kept));
        args.sums = turns_of(inner.subspan(kept));
        args.dq_blocks = blocks_of(p.queries, p.head_dim) * args.turns * args.sums;
        args.dk_blocks = blocks_of(p.keys, p.head_dim) * args.turns;
        args.dv_blocks = blocks_of(p.keys, p.value_dim) * args.turns;
        const std::int64_t blocks = args.dq_blocks + args.dk_blocks + args.dv_blocks;
        if (blocks <= 0) return;
        launches.emplace_back(PlainLaunch{.kernel = PlainKernel::Backward,
                                          .wide = p.q.dtype == DType::F64,
                                          .blocks = as_grid(blocks),
                                          .args = args});
      }));
  return launches;
}

}  // namespace harpe::cuda
