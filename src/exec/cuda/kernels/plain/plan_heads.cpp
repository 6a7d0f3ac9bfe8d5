#include <array>

#include "exec/cuda/kernels/plain/plain_operands.h"
#include "exec/cuda/kernels/plain/plain_plans.h"

namespace harpe::cuda {
namespace {

device::PlainAttentionArgs plain_attention(const AttentionProblem& p, device::Number number) {
  device::PlainAttentionArgs args{};
  args.q = plain(p.q, number);
  args.k = plain(p.k, number);
  args.v = plain(p.v, number);
  args.o_row_stride = p.o_row_stride;
  args.lse_stride = p.lse_stride;
  args.queries = p.queries;
  args.keys = p.keys;
  args.head_dim = p.head_dim;
  args.value_dim = p.value_dim;
  args.scale = p.scale;
  args.mask = plain(p.visible);
  args.carry = p.carry;
  return args;
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

// Jobs of one iteration for a result of `rows` by `columns`.
std::int64_t blocks_of(std::int64_t rows, std::int64_t columns) {
  return divide_up(rows, device::kPlainRows) * divide_up(columns, device::kPlainSlice);
}

}  // namespace

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Attend& heads) {
  LaunchSpecs launches;
  const AttentionProblem& p = heads.first;
  const auto number = number_of(p.q.dtype);
  if (!number || p.k.dtype != p.q.dtype || p.v.dtype != p.q.dtype) {
    return no_kernel(choice, "attention on `" + std::string(print(p.q.dtype)) + "`");
  }
  Loops<kAllAttendOperands> loops = heads.loops;
  for (actions::Loop<kAllAttendOperands>& loop : loops)
    loop.reduces = false;  // every iteration has its own state
  loops = joined(std::move(loops));
  device::PlainAttentionArgs args = plain_attention(p, *number);
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops, [&](const auto& offsets, const auto& inner) {
        args.q.data = moved(p.q.data, offsets[kQ]);
        args.k.data = moved(p.k.data, offsets[kK]);
        args.v.data = moved(p.v.data, offsets[kV]);
        args.o = moved(p.o, offsets[kO]);
        args.lse = moved(p.lse, offsets[kL]);
        args.tables = tables_of(p.tables, std::span(offsets).template last<actions::kMaskTables>());
        args.nest = nest_of(inner);
        args.turns = turns_of(inner);
        const std::int64_t blocks = divide_up(p.queries, device::kPlainRows) * args.turns;
        if (blocks <= 0) return;
        launches.emplace_back(PlainLaunch{.kernel = PlainKernel::Attention,
                                          .wide = p.q.dtype == DType::F64,
                                          .blocks = as_grid(blocks),
                                          .args = args});
      }));
  return launches;
}

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Differentiate& heads) {
  LaunchSpecs launches;
  const AttentionBackwardProblem& p = heads.first;
  const auto number = number_of(p.q.dtype);
  if (!number || p.k.dtype != p.q.dtype || p.v.dtype != p.q.dtype || p.d_o.dtype != p.q.dtype) {
    return no_kernel(choice, "attention backward of `" + std::string(print(p.q.dtype)) + "`");
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
