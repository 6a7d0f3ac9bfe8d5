#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/kernels/plain/device/plain_args.h"

// What plain attention forward and backward have in common: each of four warps has four rows. They
// meet kPlainInner inner rows, of another matrix, at a time, one for each lane.
namespace harpe::device {

inline constexpr int kPlainChunk = 32;  // columns that are multiplied at a time
inline constexpr int kRowsOfWarp = 4;
inline constexpr int kColumnsOfLane = kPlainSlice / 32;

template <class Real>
struct PlainTiles {
  Real rows[kPlainRows][kPlainChunk];
  Real inner[kPlainInner][kPlainChunk + 1];
  Real values[kPlainInner][kPlainSlice];
};

// Consecutive rows; those from `count` on do not exist.
struct PlainBand {
  PlainMatrix matrix;  // begins at the band's first row
  std::int64_t count;
};

HP_DEVICE PlainBand band_of(const PlainMatrix& matrix, std::int64_t offset, std::int64_t first,
                            std::int64_t rows) {
  PlainBand band{matrix, rows - first};
  band.matrix.data =
      moved(matrix.data, offset + first * matrix.row_stride * bytes_of(matrix.number));
  return band;
}

// tile = columns [column, column + kColumns) of the band; elements that do not exist are 0.
template <class Real, int kRows, int kColumns, int kStride>
HP_DEVICE void load_band(const PlainBand& band, std::int64_t column, std::int64_t columns,
                         Real (&tile)[kRows][kStride]) {
#pragma unroll 4
  for (int at = static_cast<int>(threadIdx.x); at < kRows * kColumns;
       at += kPlainAttentionThreads) {
    const int row = at / kColumns;
    const std::int64_t from = column + at % kColumns;
    const bool exists = row < band.count && from < columns;
    const std::int64_t place = row * band.matrix.row_stride + from * band.matrix.column_stride;
    tile[row][at % kColumns] =
        exists ? load_number<Real>(band.matrix.data, band.matrix.number, place) : Real{};
  }
}

HP_DEVICE int warp_row() { return static_cast<int>(threadIdx.x) / 32 * kRowsOfWarp; }
HP_DEVICE int lane_index() { return static_cast<int>(threadIdx.x) % 32; }

// dots[i] = row i of the warp times the lane's inner row. By the whole block.
template <class Real>
HP_DEVICE void multiply_rows(PlainTiles<Real>& tiles, const PlainBand& rows, const PlainBand& inner,
                             std::int64_t columns, Real (&dots)[kRowsOfWarp]) {
#pragma unroll
  for (int i = 0; i < kRowsOfWarp; ++i) dots[i] = 0;
#pragma unroll 1
  for (std::int64_t column = 0; column < columns; column += kPlainChunk) {
    __syncthreads();  // all threads have read the previous tiles
    load_band<Real, kPlainRows, kPlainChunk>(rows, column, columns, tiles.rows);
    load_band<Real, kPlainInner, kPlainChunk>(inner, column, columns, tiles.inner);
    __syncthreads();
#pragma unroll 8
    for (int at = 0; at < kPlainChunk; ++at) {
      const Real value = tiles.inner[lane_index()][at];
#pragma unroll
      for (int i = 0; i < kRowsOfWarp; ++i) dots[i] += tiles.rows[warp_row() + i][at] * value;
    }
  }
}

// sums[i] += the sum of weight x value over the inner rows that row i sees. Values of other inner
// rows are not used. By the whole block.
template <class Real>
HP_DEVICE void add_weighted(PlainTiles<Real>& tiles, const PlainBand& inner, std::int64_t column,
                            std::int64_t columns, const Real (&weights)[kRowsOfWarp],
                            const std::uint32_t (&seen)[kRowsOfWarp],
                            Real (&sums)[kRowsOfWarp][kColumnsOfLane]) {
  __syncthreads();
  load_band<Real, kPlainInner, kPlainSlice>(inner, column, columns, tiles.values);
  __syncthreads();
#pragma unroll 2
  for (int at = 0; at < kPlainInner; ++at) {
    Real values[kColumnsOfLane];
#pragma unroll
    for (int j = 0; j < kColumnsOfLane; ++j) values[j] = tiles.values[at][lane_index() + 32 * j];
#pragma unroll
    for (int i = 0; i < kRowsOfWarp; ++i) {
      const Real weight = __shfl_sync(~0U, weights[i], at);
      if ((seen[i] >> at & 1U) == 0) continue;
#pragma unroll
      for (int j = 0; j < kColumnsOfLane; ++j) sums[i][j] += weight * values[j];
    }
  }
}

// Inner rows [begin, end).
struct PlainRange {
  std::int64_t begin;
  std::int64_t end;
};

HP_DEVICE std::int64_t clamped(std::int64_t at, std::int64_t count) {
  return at < 0 ? 0 : (at > count ? count : at);
}

// A range that contains every key that a query in [first, last] sees.
HP_DEVICE PlainRange seen_keys(const PlainMask& mask, std::int64_t first, std::int64_t last,
                               std::int64_t keys) {
  const std::int64_t high = last + mask.high + 1;
  return {mask.prefix > 0 ? 0 : clamped(first + mask.low, keys),
          clamped(mask.prefix > high ? mask.prefix : high, keys)};
}

// A range that contains every query that sees a key in [first, last].
HP_DEVICE PlainRange seeing_queries(const PlainMask& mask, std::int64_t first, std::int64_t last,
                                    std::int64_t queries) {
  if (first < mask.prefix) return {0, queries};
  return {clamped(first - mask.high, queries), clamped(last - mask.low + 1, queries)};
}

}  // namespace harpe::device
