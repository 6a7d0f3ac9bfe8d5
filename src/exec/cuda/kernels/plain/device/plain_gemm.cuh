#pragma once

#include "exec/cuda/device/ragged.cuh"
#include "exec/cuda/kernels/plain/device/plain_args.h"

// GEMM with any strides, on the CUDA cores: 256 threads compute 64 x 64 of C, 4 x 4 each, from
// operands widened in shared memory. Each element is summed in a fixed order.
namespace harpe::device {

inline constexpr int kPlainDepth = 16;

template <class Real>
struct PlainGemmTiles {
  // The last dimension runs over rows of A, and over columns of B.
  alignas(16) Real a[kPlainDepth][kPlainTile + 4];
  alignas(16) Real b[kPlainDepth][kPlainTile + 4];
};

// An operand of a tile: elements [first, first + kPlainTile) x [depth, depth + kPlainDepth), as far
// as they exist.
struct PlainPanel {
  const void* data;
  Number number;
  std::int64_t stride;  // along C's rows or columns
  std::int64_t depth_stride;
  std::int64_t first;
  std::int64_t count;  // number of all rows or columns
};

// Neighbouring threads load neighbouring elements.
template <class Real>
HP_DEVICE void load_panel(const PlainPanel& panel, std::int64_t depth, std::int64_t k,
                          Real (&tile)[kPlainDepth][kPlainTile + 4]) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool along_depth = panel.depth_stride == 1;
#pragma unroll
  for (int i = 0; i < kPlainTile * kPlainDepth / kPlainGemmThreads; ++i) {
    const int number = thread + i * kPlainGemmThreads;
    const int row = along_depth ? number / kPlainDepth : number % kPlainTile;
    const int at = along_depth ? number % kPlainDepth : number / kPlainTile;
    const bool exists = panel.first + row < panel.count && depth + at < k;
    const std::int64_t place =
        (panel.first + row) * panel.stride + (depth + at) * panel.depth_stride;
    tile[at][row] = exists ? load_number<Real>(panel.data, panel.number, place) : Real{};
  }
}

template <class Real>
HP_DEVICE void multiply_tiles(const PlainGemmTiles<Real>& tiles, int row, int column,
                              Real (&sums)[4][4]) {
#pragma unroll
  for (int at = 0; at < kPlainDepth; ++at) {
    Real a[4];
    Real b[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = tiles.a[at][row + i];
#pragma unroll
    for (int j = 0; j < 4; ++j) b[j] = tiles.b[at][column + j];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] += a[i] * b[j];
    }
  }
}

template <class Real>
HP_DEVICE void plain_gemm_tile(const PlainGemmArgs& args, std::int64_t rows, std::int64_t tile,
                               std::int64_t turn, PlainGemmTiles<Real>& tiles) {
  const std::int64_t across = (args.n + kPlainTile - 1) / kPlainTile;
  const std::int64_t first_row = tile / across * kPlainTile;
  const std::int64_t first_column = tile % across * kPlainTile;
  const int row = static_cast<int>(threadIdx.x) / 16 * 4;
  const int column = static_cast<int>(threadIdx.x) % 16 * 4;
  std::int64_t base[3] = {};
  add_offsets(args.nest, 0, args.nest.kept, turn, base);
  Real sums[4][4] = {};
#pragma unroll 1
  for (std::int64_t sum = 0; sum < args.sums; ++sum) {
    std::int64_t offsets[3] = {base[0], base[1], 0};
    add_offsets(args.nest, args.nest.kept, args.nest.count, sum, offsets);
    const PlainPanel a{moved(args.a.data, offsets[0]), args.a.number, args.a.row_stride,
                       args.a.column_stride,           first_row,     rows};
    const PlainPanel b{moved(args.b.data, offsets[1]),
                       args.b.number,
                       args.b.column_stride,
                       args.b.row_stride,
                       first_column,
                       args.n};
#pragma unroll 1
    for (std::int64_t depth = 0; depth < args.k; depth += kPlainDepth) {
      load_panel(a, depth, args.k, tiles.a);
      load_panel(b, depth, args.k, tiles.b);
      __syncthreads();
      multiply_tiles(tiles, row, column, sums);
      __syncthreads();
    }
  }
  Real* const c = static_cast<Real*>(moved(args.c, base[2]));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::int64_t m = first_row + row + i;
      const std::int64_t n = first_column + column + j;
      if (m >= rows || n >= args.n) continue;
      Real* const to = c + m * args.c_row_stride + n;
      *to = args.accumulate ? *to + sums[i][j] : sums[i][j];
    }
  }
}

// The grid may have any number of thread blocks.
template <class Real>
HP_DEVICE void plain_gemm(const PlainGemmArgs& args) {
  __shared__ PlainGemmTiles<Real> tiles;
  note_used(args.used);
  const std::int64_t rows = used_of(args.used, args.m);
  const std::int64_t count =
      (rows + kPlainTile - 1) / kPlainTile * ((args.n + kPlainTile - 1) / kPlainTile);
#pragma unroll 1
  for (std::int64_t at = blockIdx.x; at < count * args.turns; at += gridDim.x) {
    const std::int64_t turn = at / count;
    plain_gemm_tile<Real>(args, rows, at - turn * count, turn, tiles);
  }
}

}  // namespace harpe::device
