#pragma once

#include "bench/cuda/device/elements.cuh"

namespace harpe::bench {

// Attention in f64, with the error bound of a kernel that computes scores and sums in f32 and
// rounds probabilities to the type of its inputs before it multiplies them by V. Per row, with
// probabilities p (their maximum 1), their sum l, and A = sum p |v| / l, Q = sum p^2 v^2 / l^2 per
// column:
// - a score has error d = (columns / 16 + 2) kMatrixRoundoff kTail sqrt(sum (scale q k)^2), plus
//   half a spacing of its own, and its exponential 2^-21; so each p has their sum r as relative
//   error. o is a quotient of sums of p: its error is 2 r A.
// - rounding p moves sums by at most A and, because the errors have random signs, by kTail sqrt(Q)
//   roundoffs; so do the additions of 16 keys each.
// - l is a sum of positive terms: its relative error is at most 2^-24 per key.
// A carried state is one more key with p = exp(lse) and v = o.
constexpr int kKeys = 1024;  // scores in memory at once
constexpr int kThreads = 256;
constexpr int kMostColumns = 576;  // of keys
constexpr int kOfThread = 2;       // columns of V, kThreads apart

struct AttentionRow {
  double q[kMostColumns];
  double score[kKeys];
  double reduced[kThreads];
  double most;
  double spread;     // largest sum (scale q k)^2 of a key
  double magnitude;  // largest |score|
};

struct RowPlace {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t sample;
  std::int64_t row;
};

__device__ inline double minus_infinity() { return __longlong_as_double(0xfff0000000000000LL); }

__device__ inline bool visible(const AttentionReferenceArgs& args, std::int64_t row,
                               std::int64_t key) {
  const std::int64_t behind = args.first_position + row - key;
  if ((args.causal || args.window > 0) && behind < 0) return false;
  return args.window == 0 || behind < args.window;
}

// The largest value of all threads, returned to all of them.
__device__ inline double block_max(AttentionRow& shared, double value) {
  __syncthreads();
  shared.reduced[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) {
      shared.reduced[threadIdx.x] =
          fmax(shared.reduced[threadIdx.x], shared.reduced[threadIdx.x + half]);
    }
    __syncthreads();
  }
  return shared.reduced[0];
}

// Computes scores of keys [first, first + count), -inf if masked. Returns the largest score.
__device__ inline double take_scores(const AttentionReferenceArgs& args, AttentionRow& shared,
                                     const RowPlace& at, std::int64_t first, int count) {
  const std::int64_t kv_head = at.head / (args.heads / args.kv_heads);
  double most = minus_infinity();
  double spread = 0;
  double magnitude = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const std::int64_t base = at.batch * args.k_strides[0] + (first + i) * args.k_strides[1] +
                              kv_head * args.k_strides[2];
    double sum = 0;
    double squares = 0;
    if (!visible(args, at.row, first + i)) {
      shared.score[i] = minus_infinity();
      continue;
    }
    for (int d = 0; d < args.columns; ++d) {
      const double term = shared.q[d] * load_element(args.k, base + d, args.in);
      sum += term;
      squares += term * term;
    }
    shared.score[i] = sum * args.scale;
    most = fmax(most, sum * args.scale);
    magnitude = fmax(magnitude, fabs(sum * args.scale));
    spread = fmax(spread, squares * args.scale * args.scale);
  }
  shared.spread = fmax(shared.spread, block_max(shared, spread));
  shared.magnitude = fmax(shared.magnitude, block_max(shared, magnitude));
  return block_max(shared, most);
}

// Running sums of one row; `columns` are this thread's columns of V.
struct RunningSums {
  struct Column {
    double value;
    double size;
    double squares;
  };
  double most;
  double l;
  Column columns[kOfThread];

  __device__ void rescale(double to) {
    const double factor = most == minus_infinity() ? 0.0 : exp(most - to);
    most = to;
    l *= factor;
    for (Column& column : columns) {
      column.value *= factor;
      column.size *= factor;
      column.squares *= factor * factor;
    }
  }
  // `value_of(column)`: of V.
  template <class ValueOf>
  __device__ void add(double p, int v_columns, const ValueOf& value_of) {
    l += p;
    for (int i = 0; i < kOfThread; ++i) {
      const int column = static_cast<int>(threadIdx.x) + i * kThreads;
      const double v = column < v_columns ? value_of(column) : 0.0;
      columns[i].value += p * v;
      columns[i].size += p * fabs(v);
      columns[i].squares += p * p * v * v;
    }
  }
};

__device__ inline void add_keys(const AttentionReferenceArgs& args, AttentionRow& shared,
                                const RowPlace& at, std::int64_t first, int count,
                                RunningSums& sums) {
  const double found = take_scores(args, shared, at, first, count);
  const double most = fmax(sums.most, found);
  if (most == minus_infinity()) return;
  sums.rescale(most);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    shared.score[i] = shared.score[i] == minus_infinity() ? 0.0 : exp(shared.score[i] - most);
  }
  __syncthreads();
  const std::int64_t kv_head = at.head / (args.heads / args.kv_heads);
  for (int i = 0; i < count; ++i) {
    const double p = shared.score[i];
    if (p == 0) continue;
    const std::int64_t base = at.batch * args.v_strides[0] + (first + i) * args.v_strides[1] +
                              kv_head * args.v_strides[2];
    sums.add(p, args.v_columns,
             [&](int column) { return load_element(args.v, base + column, args.in); });
  }
  __syncthreads();
}

__device__ inline void store_row(const AttentionReferenceArgs& args, const AttentionRow& shared,
                                 const RowPlace& at, const RunningSums& sums) {
  const bool empty = sums.l == 0;
  const double keys = static_cast<double>(args.keys);
  const double lse = empty ? minus_infinity() : sums.most + log(sums.l);
  const double score_error =
      (args.columns / 16 + 2) * kMatrixRoundoff * kTail * sqrt(shared.spread) +
      shared.magnitude * 0x1p-22;
  const double relative = score_error + 0x1p-21 + keys * 0x1p-24;
  if (threadIdx.x == 0) {
    const std::int64_t place = (at.batch * args.heads + at.head) * args.sample.count + at.sample;
    args.lse[place] = lse;
    args.lse_bound[place] = relative + (empty ? 0 : fabs(lse)) * 0x1p-22 + 0x1p-20;
  }
  for (int i = 0; i < kOfThread; ++i) {
    const int column = static_cast<int>(threadIdx.x) + i * kThreads;
    if (column >= args.v_columns) return;
    const RunningSums::Column& own = sums.columns[i];
    const double o = empty ? 0 : own.value / sums.l;
    const double size = empty ? 0 : own.size / sums.l;
    const double spread = empty ? 0 : fmin(size, kTail * sqrt(own.squares) / sums.l);
    const double error =
        2 * relative * size + spread * (unit_roundoff(args.in) + (keys / 16 + 4) * kMatrixRoundoff);
    const std::int64_t row = (at.batch * args.sample.count + at.sample) * args.heads + at.head;
    const std::int64_t place = row * args.v_columns + column;
    args.value[place] = o;
    args.bound[place] = error + unit_roundoff(args.out) * (fabs(o) + error) + 0x1p-24;
  }
}

// One thread block per row: sample row, head, batch.
__device__ inline void attention_reference(const AttentionReferenceArgs& args) {
  __shared__ AttentionRow shared;
  const RowPlace at = {.batch = static_cast<std::int64_t>(blockIdx.z),
                       .head = static_cast<std::int64_t>(blockIdx.y),
                       .sample = static_cast<std::int64_t>(blockIdx.x),
                       .row = sampled_row(args.sample, static_cast<std::int64_t>(blockIdx.x))};
  const std::int64_t q_base =
      at.batch * args.q_strides[0] + at.row * args.q_strides[1] + at.head * args.q_strides[2];
  for (int column = static_cast<int>(threadIdx.x); column < args.columns; column += kThreads) {
    shared.q[column] = load_element(args.q, q_base + column, args.in);
  }
  if (threadIdx.x == 0) {
    shared.spread = 0;
    shared.magnitude = 0;
  }
  __syncthreads();
  RunningSums sums = {.most = minus_infinity(), .l = 0, .columns = {}};
  if (args.start_lse != nullptr) {
    const std::int64_t state = (at.batch * args.heads + at.head) * args.sample.all + at.row;
    const std::int64_t row = (at.batch * args.sample.all + at.row) * args.heads + at.head;
    const double lse = args.start_lse[state];
    if (lse != minus_infinity()) {
      sums.most = lse;
      sums.add(1.0, args.v_columns,
               [&](int column) { return args.start_o[row * args.v_columns + column]; });
    }
  }
  for (std::int64_t first = 0; first < args.keys; first += kKeys) {
    const std::int64_t left = args.keys - first;
    add_keys(args, shared, at, first, static_cast<int>(left < kKeys ? left : kKeys), sums);
  }
  store_row(args, shared, at, sums);
}

}  // namespace harpe::bench
