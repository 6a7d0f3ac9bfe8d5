#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/kernels/plain/device/plain_args.h"

// Folds contributions of several ranks in their order and rounds once: sums, and states of
// attention (o, l) with normalised rows o and natural logarithms l. All operands are loaded before
// the first is used, since those of other ranks take microseconds to arrive.
namespace harpe::device {

template <class Real, int kCount>
HP_DEVICE void load_operand(const FoldOperand& from, std::int64_t offset, Real (&values)[kCount]) {
  if constexpr (kCount == 1) {
    values[0] = load_number<Real>(moved(from.data, offset), from.number, 0);
  } else {
    load_numbers(moved(from.data, offset), from.number, values);
  }
  if (from.wire == from.number) return;
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = round_to(from.wire, values[i]);
}

template <class Real, int kCount, class Index>
HP_DEVICE void sum_turns(const SumArgs& args) {
  const auto count = static_cast<Index>(args.turns);
  const auto step = static_cast<Index>(threads_of_grid());
  for (auto at = static_cast<Index>(thread_of_grid()); at < count; at += step) {
    std::int64_t offsets[1 + kFoldSources] = {};
    add_offsets(args.nest, 0, args.nest.count, at, offsets);
    Real values[kFoldSources][kCount];
#pragma unroll
    for (int i = 0; i < kFoldSources; ++i) {
      if (i < args.count) load_operand(args.from[i], offsets[1 + i], values[i]);
    }
#pragma unroll
    for (int i = 1; i < kFoldSources; ++i) {
      if (i >= args.count) break;
#pragma unroll
      for (int k = 0; k < kCount; ++k) values[0][k] += values[i][k];
    }
    void* const to = moved(args.to, offsets[0]);
    if constexpr (kCount == 1) {
      store_number(to, args.to_number, 0, values[0][0]);
    } else {
      store_numbers(to, args.to_number, values[0]);
    }
  }
}

// Real: the type of the computation.
template <class Real>
HP_DEVICE void sum(const SumArgs& args) {
  constexpr int kWidth = map_width(sizeof(Real) == 8);
  if (args.turns >= (std::int64_t{1} << 31)) return sum_turns<Real, 1, std::uint64_t>(args);
  if (args.vectors) return sum_turns<Real, kWidth, std::uint32_t>(args);
  sum_turns<Real, 1, std::uint32_t>(args);
}

// The weights of the state so far and of the next. A state whose l is -inf is the identity; its o
// is not used.
template <class Real>
struct Weights {
  Real mine;
  Real other;
  bool takes_mine;
  bool takes_other;
};

// With d = l2 - l the weights are 1 / (1 + e^d) and 1 / (1 + e^-d). The larger is computed first,
// so that the exponential never overflows. In f64, as on the host. Sets `l` to the joint logarithm.
template <class Real>
HP_DEVICE Weights<Real> weigh(Real& l, Real l2) {
  if (l2 == none<Real>()) return {.mine = 1, .other = 0, .takes_mine = true, .takes_other = false};
  if (l == none<Real>()) {
    l = l2;
    return {.mine = 0, .other = 1, .takes_mine = false, .takes_other = true};
  }
  const double difference = static_cast<double>(l2) - static_cast<double>(l);
  const double e = exp(-fabs(difference));
  const double larger = 1.0 / (1.0 + e);
  const Weights<Real> weights{.mine = static_cast<Real>(difference > 0 ? e * larger : larger),
                              .other = static_cast<Real>(difference > 0 ? larger : e * larger),
                              .takes_mine = true,
                              .takes_other = true};
  l = static_cast<Real>(static_cast<double>(difference > 0 ? l2 : l) + log1p(e));
  return weights;
}

// By a warp.
template <class Real>
HP_DEVICE void combine_row(const CombineArgs& args,
                           const std::int64_t (&offsets)[CombineArgs::kOperands]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Real logarithms[kFoldSources];
#pragma unroll
  for (int i = 0; i < kFoldSources; ++i) {
    Real value[1] = {};
    if (i < args.count) load_operand(args.from_l[i], offsets[3 + 2 * i], value);
    logarithms[i] = value[0];
  }
  Weights<Real> weights[kFoldSources];
#pragma unroll
  for (int i = 1; i < kFoldSources; ++i) {
    if (i < args.count) weights[i] = weigh(logarithms[0], logarithms[i]);
  }
  for (std::int64_t column = lane; column < args.value_dim; column += 32) {
    Real values[kFoldSources];
#pragma unroll
    for (int i = 0; i < kFoldSources; ++i) {
      if (i >= args.count) break;
      Real value[1];
      load_operand(args.from_o[i], offsets[2 + 2 * i] + column * bytes_of(args.from_o[i].number),
                   value);
      values[i] = value[0];
    }
#pragma unroll
    for (int i = 1; i < kFoldSources; ++i) {
      if (i >= args.count || !weights[i].takes_other) continue;
      values[0] = weights[i].takes_mine ? values[0] * weights[i].mine + values[i] * weights[i].other
                                        : values[i];
    }
    store_number(moved(args.o, offsets[0]), args.o_number, column, values[0]);
  }
  __syncwarp();  // all lanes have read l of the first state, which may be args.l
  if (lane == 0) store_number(moved(args.l, offsets[1]), args.l_number, 0, logarithms[0]);
}

template <class Real>
HP_DEVICE void combine(const CombineArgs& args) {
  for (std::int64_t at = warp_of_grid(); at < args.all_rows; at += warps_of_grid()) {
    const std::int64_t turn = at / args.rows;
    const std::int64_t row = at - turn * args.rows;
    std::int64_t offsets[CombineArgs::kOperands];
#pragma unroll
    for (int i = 0; i < CombineArgs::kOperands; ++i) offsets[i] = row * args.row_bytes[i];
    add_offsets(args.nest, 0, args.nest.count, turn, offsets);
    combine_row<Real>(args, offsets);
  }
}

}  // namespace harpe::device
