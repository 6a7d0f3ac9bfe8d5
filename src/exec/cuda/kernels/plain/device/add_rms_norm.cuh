#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/device/pointwise.cuh"
#include "exec/cuda/kernels/plain/device/plain_args.h"

// The residual connection and the norm after it, one thread block per row. Thread t has runs t,
// t + 256, … of neighbouring elements. With dense operands of one type it keeps its sums in
// registers until the row's norm is known, so that x and the residual are read once. Runs beyond
// kNormKept, and all runs of other operands, are loaded again from where the same thread has stored
// the sum.
namespace harpe::device {

template <class Real>
inline constexpr int kNormKept = sizeof(Real) == 8 ? 2 : 8;  // runs that a thread keeps

template <class Real>
struct NormRun {
  Real at[kNormRun];
};

// Byte offsets of a row's operands, in the order of the arguments.
struct NormRow {
  std::int64_t offsets[AddRmsNormArgs::kOperands];
};

// Operands of any types and strides.
struct AnyNorm {
  static constexpr bool kDense = false;
  const AddRmsNormArgs& args;

  HP_DEVICE Number number(int operand) const { return args.numbers[operand]; }
};

// Dense operands of one type that is known at compile time.
template <Number kNumber>
struct DenseNorm {
  static constexpr bool kDense = true;
  const AddRmsNormArgs& args;

  HP_DEVICE Number number(int) const { return kNumber; }
};

HP_DEVICE std::int64_t first_of_run(std::int64_t run) {
  return (run * kNormThreads + static_cast<std::int64_t>(threadIdx.x)) * kNormRun;
}

// The run from element `first` on; elements beyond the row are 0.
template <class Real, class Norm>
HP_DEVICE NormRun<Real> load_run(const Norm& norm, int operand, const void* row,
                                 std::int64_t first) {
  NormRun<Real> run;
  const std::int64_t step = norm.args.element_bytes[operand];
  if constexpr (Norm::kDense) {
    load_numbers(moved(row, first * step), norm.number(operand), run.at);
  } else {
#pragma unroll
    for (int i = 0; i < kNormRun; ++i) {
      const bool is_there = first + i < norm.args.length;
      run.at[i] = is_there
                      ? load_number<Real>(moved(row, (first + i) * step), norm.number(operand), 0)
                      : Real(0);
    }
  }
  return run;
}

template <class Real, class Norm>
HP_DEVICE void store_run(const Norm& norm, int operand, void* row, std::int64_t first,
                         const NormRun<Real>& run) {
  const std::int64_t step = norm.args.element_bytes[operand];
  if constexpr (Norm::kDense) {
    store_numbers(moved(row, first * step), norm.number(operand), run.at);
  } else {
#pragma unroll
    for (int i = 0; i < kNormRun; ++i) {
      if (first + i < norm.args.length) {
        store_number(moved(row, (first + i) * step), norm.number(operand), 0, run.at[i]);
      }
    }
  }
}

template <class Real, class Norm>
HP_DEVICE NormRun<Real> load_total(const Norm& norm, const NormRow& row, std::int64_t first) {
  NormRun<Real> total = load_run<Real>(norm, 0, moved(norm.args.x, row.offsets[0]), first);
  const NormRun<Real> residual =
      load_run<Real>(norm, 1, moved(norm.args.residual, row.offsets[1]), first);
#pragma unroll
  for (int i = 0; i < kNormRun; ++i) total.at[i] += residual.at[i];
  return total;
}

// Rounds `total` to the sum's type, stores it, and adds its squares.
template <class Real, class Norm>
HP_DEVICE void keep_total(const Norm& norm, const NormRow& row, std::int64_t first,
                          NormRun<Real>& total, Real& squares) {
#pragma unroll
  for (int i = 0; i < kNormRun; ++i) total.at[i] = round_to(norm.number(3), total.at[i]);
  store_run(norm, 3, moved(norm.args.sum, row.offsets[3]), first, total);
#pragma unroll
  for (int i = 0; i < kNormRun; ++i) squares += total.at[i] * total.at[i];
}

template <class Real, class Norm>
HP_DEVICE void store_scaled(const Norm& norm, const NormRow& row, std::int64_t first,
                            const NormRun<Real>& total, Real scale) {
  NormRun<Real> weights = load_run<Real>(norm, 2, moved(norm.args.weight, row.offsets[2]), first);
#pragma unroll
  for (int i = 0; i < kNormRun; ++i) weights.at[i] = total.at[i] * scale * weights.at[i];
  store_run(norm, 4, moved(norm.args.y, row.offsets[4]), first, weights);
}

// The sum over all threads of the block, for each of them: within warps as trees, then over warps
// in order. `parts` may be written again once all threads have passed another barrier.
template <class Real>
HP_DEVICE Real add_over_block(Real value, Real (&parts)[kNormThreads / 32]) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  Real sum = 0;
#pragma unroll
  for (int warp = 0; warp < kNormThreads / 32; ++warp) sum += parts[warp];
  return sum;
}

template <class Real, class Norm>
HP_DEVICE void normalise_row(const Norm& norm, const NormRow& row,
                             Real (&parts)[kNormThreads / 32]) {
  constexpr int kKept = Norm::kDense ? kNormKept<Real> : 0;
  const std::int64_t length = norm.args.length;
  NormRun<Real> kept[kKept + 1];
  Real squares = 0;
  // All loads are issued before the first store, since the compiler does not move them across it.
#pragma unroll
  for (int run = 0; run < kKept; ++run) {
    const std::int64_t first = first_of_run(run);
    if (first < length) kept[run] = load_total<Real>(norm, row, first);
  }
#pragma unroll
  for (int run = 0; run < kKept; ++run) {
    const std::int64_t first = first_of_run(run);
    if (first < length) keep_total(norm, row, first, kept[run], squares);
  }
#pragma unroll 1
  for (std::int64_t run = kKept; first_of_run(run) < length; ++run) {
    NormRun<Real> total = load_total<Real>(norm, row, first_of_run(run));
    keep_total(norm, row, first_of_run(run), total, squares);
  }
  const Real mean = add_over_block(squares, parts) / static_cast<Real>(length);
  const Real scale = 1 / square_root(mean + static_cast<Real>(norm.args.epsilon));
#pragma unroll
  for (int run = 0; run < kKept; ++run) {
    const std::int64_t first = first_of_run(run);
    if (first < length) store_scaled(norm, row, first, kept[run], scale);
  }
#pragma unroll 1
  for (std::int64_t run = kKept; first_of_run(run) < length; ++run) {
    const NormRun<Real> total =
        load_run<Real>(norm, 3, moved(norm.args.sum, row.offsets[3]), first_of_run(run));
    store_scaled(norm, row, first_of_run(run), total, scale);
  }
}

HP_DEVICE NormRow find_row(const AddRmsNormArgs& args, std::int64_t at) {
  const std::int64_t turn = at / args.rows;
  NormRow row;
#pragma unroll
  for (int i = 0; i < AddRmsNormArgs::kOperands; ++i) {
    row.offsets[i] = (at - turn * args.rows) * args.row_bytes[i];
  }
  add_offsets(args.nest, 0, args.nest.count, turn, row.offsets);
  return row;
}

// Prefetches the residual and the weight into the L2 cache, but not x, which a preceding kernel
// makes. L2 is coherent for all kernels, so this may run before that kernel has ended.
template <class Real, class Norm>
HP_DEVICE void fetch_ahead(const Norm& norm, const NormRow& row) {
  if constexpr (Norm::kDense) {
#pragma unroll
    for (int run = 0; run < kNormKept<Real>; ++run) {
      const std::int64_t first = first_of_run(run);
      if (first >= norm.args.length) return;
      prefetch(moved(norm.args.residual, row.offsets[1] + first * norm.args.element_bytes[1]));
      prefetch(moved(norm.args.weight, row.offsets[2] + first * norm.args.element_bytes[2]));
    }
  }
}

// Launched with PDL: starts while the preceding kernel ends.
template <class Real, class Norm>
HP_DEVICE void normalise_rows(const Norm& norm) {
  __shared__ Real parts[2][kNormThreads / 32];
  const AddRmsNormArgs& args = norm.args;
  let_next_kernel_begin();
  fetch_ahead<Real>(norm, find_row(args, blockIdx.x));  // every thread block has a row
  await_kernel_before();
  int part = 0;
  for (std::int64_t at = blockIdx.x; at < args.all_rows; at += gridDim.x) {
    normalise_row(norm, find_row(args, at), parts[part]);
    part ^= 1;  // a thread may still read the previous row's parts
  }
}

template <class Real>
HP_DEVICE void add_rms_norm(const AddRmsNormArgs& args) {
  if (!args.dense) return normalise_rows<Real>(AnyNorm{args});
  if constexpr (sizeof(Real) == 8) {
    normalise_rows<Real>(DenseNorm<Number::F64>{args});
  } else if (args.numbers[0] == Number::F32) {
    normalise_rows<Real>(DenseNorm<Number::F32>{args});
  } else if (args.numbers[0] == Number::F16) {
    normalise_rows<Real>(DenseNorm<Number::F16>{args});
  } else {
    normalise_rows<Real>(DenseNorm<Number::BF16>{args});
  }
}

}  // namespace harpe::device
