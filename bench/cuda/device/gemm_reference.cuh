#pragma once

#include "bench/cuda/device/elements.cuh"

namespace harpe::bench {

// C in f64, with the error bound of a GEMM that accumulates in f32. If the terms a b of an element
// have random signs, every partial sum in any order is at most kTail sqrt(q), where q is the sum of
// their squares. Each of `roundings` additions has an error of kMatrixRoundoff of such a sum (or of
// what C held); then C is rounded once to its type. A gelu has slopes of at most 1.13, and the
// kernel's gelu has an error of 2^-16 of its value.
constexpr int kTile = 64;  // rows and columns of a thread block
constexpr int kDepth = 16;
constexpr int kOwn = 4;  // rows and columns of a thread; 16 x 16 threads

struct ReferenceTile {
  double a[kDepth][kTile + 1];
  double b[kDepth][kTile + 1];
};

__device__ inline void load_tile(const GemmReferenceArgs& args, ReferenceTile& tile,
                                 std::int64_t row, std::int64_t column, std::int64_t depth) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += 256) {
    const std::int64_t a_row = row + i / kDepth;
    const std::int64_t a_k = depth + i % kDepth;
    const bool a_inside = a_row < args.sample.count && a_k < args.k;
    const std::int64_t m = sampled_row(args.sample, a_row);
    const std::int64_t a_at = args.a_m_major ? a_k * args.a.stride + m : m * args.a.stride + a_k;
    tile.a[i % kDepth][i / kDepth] =
        a_inside ? load_element(args.a.address, a_at, args.a.element) : 0.0;
    const int b_column = args.b_k_major ? i / kDepth : i % kTile;
    const int b_depth = args.b_k_major ? i % kDepth : i / kTile;
    const std::int64_t n = column + b_column;
    const std::int64_t k = depth + b_depth;
    const std::int64_t at = args.b_k_major ? n * args.b.stride + k : k * args.b.stride + n;
    tile.b[b_depth][b_column] =
        n < args.n && k < args.k ? load_element(args.b.address, at, args.b.element) : 0.0;
  }
}

__device__ inline void store_reference(const GemmReferenceArgs& args, std::int64_t row,
                                       std::int64_t column, double sum, double squares) {
  if (row >= args.sample.count || column >= args.n) return;
  double held = 0;
  if (args.start != nullptr) {
    held = args.start[sampled_row(args.sample, row) * args.n + column];
  }
  if (args.adds_row) held += load_element(args.row.address, column, args.row.element);
  double value = held + sum;
  const double partial = kTail * sqrt(squares) + fabs(held);
  double accumulated = args.roundings * kMatrixRoundoff * partial;
  if (args.takes_gelu) {
    value *= erfc(-value * 0.70710678118654752) / 2;
    accumulated = 1.13 * accumulated + 0x1p-16 * fabs(value);
  }
  // The normal values of f16 end at 2^-14; below, the spacing is constant.
  args.value[row * args.n + column] = value;
  args.bound[row * args.n + column] =
      accumulated + unit_roundoff(args.out) * (fabs(value) + accumulated) + 0x1p-25;
}

__device__ inline void gemm_reference(const GemmReferenceArgs& args) {
  __shared__ ReferenceTile tile;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const int down = static_cast<int>(threadIdx.x) / 16;
  const int across = static_cast<int>(threadIdx.x) % 16;
  double sum[kOwn][kOwn] = {};
  double squares[kOwn][kOwn] = {};
  for (std::int64_t depth = 0; depth < args.k; depth += kDepth) {
    load_tile(args, tile, row, column, depth);
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
      for (int i = 0; i < kOwn; ++i) {
        const double a = tile.a[k][down + 16 * i];
        for (int j = 0; j < kOwn; ++j) {
          const double term = a * tile.b[k][across + 16 * j];
          sum[i][j] += term;
          squares[i][j] += term * term;
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kOwn; ++i) {
    for (int j = 0; j < kOwn; ++j) {
      store_reference(args, row + down + 16 * i, column + across + 16 * j, sum[i][j],
                      squares[i][j]);
    }
  }
}

}  // namespace harpe::bench
