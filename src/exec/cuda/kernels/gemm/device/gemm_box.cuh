#pragma once

#include "exec/cuda/device/pointwise.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_walk.cuh"

// What a consumer does with its sums before TMA stores them: it applies the maps, rounds, and
// writes them into a box of C in shared memory.
namespace harpe::device {

// Applies the maps from kMap on to a value of the column.
template <GemmConfig kConfig, int kMap = 0>
HP_DEVICE float map_value(const GemmArgs& args, int column, float value) {
  if constexpr (kConfig.maps[kMap] == GemmMap::AddRow) {
    const std::uint32_t bits = static_cast<const std::uint16_t*>(args.map_rows[kMap])[column];
    value += kConfig.in == Element::F16 ? widen_f16_fast(bits) : widen_bf16(bits);
  }
  if constexpr (kConfig.maps[kMap] == GemmMap::Gelu) value = gelu_of_16_bits(value);
  if constexpr (kMap + 1 < GemmConfig::kMostMaps) {
    return map_value<kConfig, kMap + 1>(args, column, value);
  } else {
    return value;
  }
}

// A consumer's block of C is stored in pieces: boxes, or, if `swapped`, boxes side by side, since a
// thread has the same accumulators for them.
template <GemmConfig kConfig>
struct Pieces {
  static constexpr int kBoxes = kConfig.swapped ? kConfig.boxes_across() : 1;
  static constexpr int kOfSlice = kConfig.boxes_of_slice() / kBoxes;
  static constexpr int kAll = kConfig.slices() * kOfSlice;
  static constexpr int kSums = kConfig.slice_sums() / kOfSlice;  // that a thread has of one
};

// Applies the maps to the sums of piece `index` of a slice, while TMA stores earlier boxes. Bulk
// rows are multiples of 16 bytes, so n is even and both columns of a pair exist, or neither is
// stored.
template <GemmConfig kConfig>
HP_DEVICE void map_piece(const GemmArgs& args, const GemmWalk<kConfig>& walk, int index,
                         float* sums) {
  constexpr int kEights = kConfig.store_columns() / 8;
#pragma unroll
  for (int eight = 0; eight < kEights; ++eight) {
    const int column =
        walk.column() + (index * kEights + eight) * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
    if (column >= args.n) continue;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& value = sums[eight * 4 + i];
      value = map_value<kConfig>(args, column + i % 2, value);
    }
  }
}

// Writes the box of a piece into shared memory. In each warp of sixteen rows, lane t holds the
// accumulators of rows t / 4 and t / 4 + 8, columns 8 j + 2 (t % 4) and the next.
template <GemmConfig kConfig>
HP_DEVICE void write_box(std::uint32_t box, const float* sums) {
  constexpr int kPerBox = Pieces<kConfig>::kSums;
  constexpr int kRowBytes = kConfig.store_row_bytes();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(threadIdx.x) % 128 / 32 * 16;
  if constexpr (kConfig.out == Element::F32) {
    const int row = first_row + lane / 4;
#pragma unroll
    for (int j = 0; j < kPerBox / 4; ++j) {
      const float* from = &sums[j * 4];
      const int column = j * 32 + lane % 4 * 8;
      store_pair(swizzled<kRowBytes>(box, row, column), from[0], from[1]);
      store_pair(swizzled<kRowBytes>(box, row + 8, column), from[2], from[3]);
    }
  } else {
    const int row = first_row + lane % 16;
#pragma unroll
    for (int j = 0; j < kPerBox / 8; ++j) {
      const float* from = &sums[j * 8];
      store_matrices(swizzled<kRowBytes>(box, row, j * 32 + lane / 16 * 16),
                     pack<kConfig.out>(from[0], from[1]), pack<kConfig.out>(from[2], from[3]),
                     pack<kConfig.out>(from[4], from[5]), pack<kConfig.out>(from[6], from[7]));
    }
  }
}

// The same where a lane holds columns lane / 4 and lane / 4 + 8 of its warp's sixteen, rows 8 j +
// 2 (lane % 4) and the next. A box in f32 has the columns of two warps, and is number `across` of
// two side by side.
template <GemmConfig kConfig>
HP_DEVICE void write_swapped_box(std::uint32_t box, const float* sums, int across) {
  constexpr int kEights = kConfig.store_rows() / 8;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) % 128 / 32;
  if constexpr (kConfig.out == Element::F32) {
    if (warp / 2 != across) return;
#pragma unroll
    for (int j = 0; j < kEights; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = j * 8 + lane % 4 * 2 + i % 2;
        const int column = (warp % 2 * 16 + i / 2 * 8 + lane / 4) * 4;
        store_float(swizzled(box, row, column), sums[j * 4 + i]);
      }
    }
  } else {
    const int row = lane / 16 * 8 + lane % 8;
    const int column = warp * 32 + lane / 8 % 2 * 16;
#pragma unroll
    for (int j = 0; j < kEights; j += 2) {
      const float* from = &sums[j * 4];
      if (j + 1 == kEights) {
        store_matrices_transposed(swizzled(box, j * 8 + lane % 8, column),
                                  pack<kConfig.out>(from[0], from[1]),
                                  pack<kConfig.out>(from[2], from[3]));
        break;
      }
      store_matrices_transposed(
          swizzled(box, j * 8 + row, column), pack<kConfig.out>(from[0], from[1]),
          pack<kConfig.out>(from[2], from[3]), pack<kConfig.out>(from[4], from[5]),
          pack<kConfig.out>(from[6], from[7]));
    }
  }
}

}  // namespace harpe::device
