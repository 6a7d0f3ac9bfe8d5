#include <algorithm>
#include <array>
#include <cstdint>

#include "exec/cpu/kernels/gemm_dense.h"
#include "exec/cpu/kernels/scratch.h"
#include "support/round_up.h"

namespace harpe {
namespace {

// The usual three-level blocking: B in panels of kDepth x kColumns (L3 cache), A in blocks of kRows
// x kDepth (L2 cache), both repacked so that a register tile of tile_rows x tile_columns reads them
// sequentially. Edges are padded with zeros and stored through a small tile.
constexpr std::int64_t kRows = 192;
constexpr std::int64_t kColumns = 2048;
constexpr std::int64_t kDepth = 256;

template <class T>
struct Tile {
  const T* a;  // depth x tile_rows
  const T* b;  // depth x tile_columns
  T* c;
  std::int64_t c_row_stride;
  std::int64_t depth;
  bool accumulate;
};

template <class T>
struct TileKernel {
  std::int64_t rows;
  std::int64_t columns;
  void (*run)(const Tile<T>&);
};

// kBytes is the width of a vector register; kTileRows x 2 of them accumulate.
template <class T, int kBytes, int kTileRows>
[[gnu::always_inline]] inline void multiply_tile(const Tile<T>& tile) {
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  typedef T Vector __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  Vector sum[kTileRows][2] = {};
  const T* a = tile.a;
  const T* b = tile.b;
  for (std::int64_t k = 0; k < tile.depth; ++k, a += kTileRows, b += 2 * kLanes) {
    const Vector left = *reinterpret_cast<const Vector*>(b);
    const Vector right = *reinterpret_cast<const Vector*>(b + kLanes);
#pragma GCC unroll 16
    for (int row = 0; row < kTileRows; ++row) {
      sum[row][0] += a[row] * left;
      sum[row][1] += a[row] * right;
    }
  }
#pragma GCC unroll 16
  for (int row = 0; row < kTileRows; ++row) {
    Vector* c = reinterpret_cast<Vector*>(tile.c + row * tile.c_row_stride);
    c[0] = tile.accumulate ? c[0] + sum[row][0] : sum[row][0];
    c[1] = tile.accumulate ? c[1] + sum[row][1] : sum[row][1];
  }
}

template <class T>
void tile_baseline(const Tile<T>& tile) {
  multiply_tile<T, 16, 4>(tile);
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("arch=x86-64-v3")]] void tile_avx2(const Tile<T>& tile) {
  multiply_tile<T, 32, 6>(tile);
}
template <class T>
[[gnu::target("arch=x86-64-v4")]] void tile_avx512(const Tile<T>& tile) {
  multiply_tile<T, 64, 12>(tile);
}
#endif

template <class T>
TileKernel<T> tile_kernel() {
  constexpr std::int64_t kLanes = 16 / sizeof(T);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    return {.rows = 12, .columns = 2 * 4 * kLanes, .run = &tile_avx512<T>};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {.rows = 6, .columns = 2 * 2 * kLanes, .run = &tile_avx2<T>};
  }
#endif
  return {.rows = 4, .columns = 2 * kLanes, .run = &tile_baseline<T>};
}

// Strips of `strip` lines (rows of A, columns of B), depth-major within a strip; the last one is
// padded. `line_stride` and `depth_stride` are the steps in `source`.
template <class T>
void pack_strips(T* out, const T* source, std::int64_t line_stride, std::int64_t depth_stride,
                 std::int64_t lines, std::int64_t depth, std::int64_t strip) {
  for (std::int64_t first = 0; first < lines; first += strip) {
    const std::int64_t width = std::min(strip, lines - first);
    for (std::int64_t k = 0; k < depth; ++k, out += strip) {
      const T* from = source + first * line_stride + k * depth_stride;
      for (std::int64_t line = 0; line < width; ++line) out[line] = from[line * line_stride];
      std::fill(out + width, out + strip, T{0});
    }
  }
}

template <class T>
struct Strides {
  std::int64_t row;
  std::int64_t column;
  explicit Strides(const DenseView<T>& view)
      : row(view.transposed ? 1 : view.stride), column(view.transposed ? view.stride : 1) {}
};

// One packed block of A times one packed panel of B.
template <class T>
void multiply_block(const TileKernel<T>& kernel, const T* a, const T* b, std::int64_t rows,
                    std::int64_t columns, std::int64_t depth, T* c, std::int64_t c_row_stride,
                    bool accumulate) {
  alignas(64) std::array<T, 12 * 32> edge{};
  for (std::int64_t j = 0; j < columns; j += kernel.columns) {
    for (std::int64_t i = 0; i < rows; i += kernel.rows) {
      Tile<T> tile{.a = a + i * depth,
                   .b = b + j * depth,
                   .c = c + i * c_row_stride + j,
                   .c_row_stride = c_row_stride,
                   .depth = depth,
                   .accumulate = accumulate};
      if (i + kernel.rows <= rows && j + kernel.columns <= columns) {
        kernel.run(tile);
        continue;
      }
      T* whole = tile.c;
      tile.c = edge.data();
      tile.c_row_stride = kernel.columns;
      tile.accumulate = false;
      kernel.run(tile);
      for (std::int64_t row = 0; row < std::min(kernel.rows, rows - i); ++row) {
        for (std::int64_t column = 0; column < std::min(kernel.columns, columns - j); ++column) {
          T& out = whole[row * c_row_stride + column];
          const T sum = edge[static_cast<std::size_t>(row * kernel.columns + column)];
          out = accumulate ? out + sum : sum;
        }
      }
    }
  }
}

template <class T>
void multiply_blocked(const DenseGemm<T, T>& p) {
  static const TileKernel<T> kernel = tile_kernel<T>();
  const Strides<T> a_strides(p.a);
  const Strides<T> b_strides(p.b);
  const std::int64_t depth = std::min(p.k, kDepth);
  T* a = scratch_of<T>(Scratch::PackA, round_up(std::min(p.m, kRows), kernel.rows) * depth);
  T* b = scratch_of<T>(Scratch::PackB, round_up(std::min(p.n, kColumns), kernel.columns) * depth);
  for (std::int64_t j = 0; j < p.n; j += kColumns) {
    const std::int64_t n = std::min(kColumns, p.n - j);
    for (std::int64_t kk = 0; kk < p.k; kk += kDepth) {
      const std::int64_t k = std::min(kDepth, p.k - kk);
      pack_strips(b, p.b.data + kk * b_strides.row + j * b_strides.column, b_strides.column,
                  b_strides.row, n, k, kernel.columns);
      for (std::int64_t i = 0; i < p.m; i += kRows) {
        const std::int64_t m = std::min(kRows, p.m - i);
        pack_strips(a, p.a.data + i * a_strides.row + kk * a_strides.column, a_strides.row,
                    a_strides.column, m, k, kernel.rows);
        multiply_block(kernel, a, b, m, n, k, p.c + i * p.c_row_stride + j, p.c_row_stride,
                       p.accumulate || kk > 0);
      }
    }
  }
}

}  // namespace

void multiply_loops(const GemmF32& problem) { multiply_blocked(problem); }
void multiply_loops(const GemmF64& problem) { multiply_blocked(problem); }

}  // namespace harpe
