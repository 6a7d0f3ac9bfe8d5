#pragma once

#include "exec/cuda/device/fast_math.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/attention/device/decode_shared.cuh"

// The results of decode.cuh as consumer threads hold them, and how they are stored.
namespace harpe::device {

HP_DEVICE float decode_nothing() { return __int_as_float(static_cast<int>(0xFF800000)); }

// The place of a consumer thread. Of an accumulator [64, columns] it holds rows r = 16 warp +
// lane / 4 and r + 8, and of each eight columns the two from 2 (lane % 4) on.
struct DecodePlace {
  int thread;
  int warpgroup;
  int warp;  // of the warpgroup
  int lane;
  int row;  // the thread's first row

  HP_DEVICE static DecodePlace of_thread() {
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = __shfl_sync(0xFFFFFFFF, thread / 32, 0);
    const int lane = thread % 32;
    return {thread, warp / 4, warp % 4, lane, warp % 4 * 16 + lane / 4};
  }
  // The thread's i-th column.
  [[nodiscard]] HP_DEVICE int column(int i) const { return i / 2 * 8 + lane % 4 * 2 + i % 2; }
};

// Which warpgroup scores a column: both, or one of them if keys hold their values.
template <DecodeConfig kConfig>
struct DecodeColumns {
  static constexpr int kScored = scored_columns(kConfig);  // of a warpgroup
  static constexpr bool kSplit = kScored < kConfig.columns;
  static constexpr int kWarps = kSplit ? kDecodeWarps / 2 : kDecodeWarps;  // that score a column

  HP_DEVICE static int first_scored(const DecodePlace& place) {
    return kSplit ? place.warpgroup * kScored : 0;
  }
  HP_DEVICE static int first_warp(int column) { return kSplit ? column / kScored * kWarps : 0; }
};

// A thread's share of the state of a part: sums of all columns, but references and weights of those
// that its warpgroup scores.
template <DecodeConfig kConfig>
struct DecodeState {
  static constexpr int kSums = kConfig.columns / 2;
  static constexpr int kScored = scored_columns(kConfig) / 4;
  float sums[value_blocks(kConfig)][kSums];  // weighted sums of values: an accumulator a block
  float references[kScored];                 // of its columns, scaled
  float weights[kScored];                    // sums of weights of its columns
};

// Reductions over the lanes that hold the same columns.
HP_DEVICE float max_of_rows(float value) {
#pragma unroll
  for (int lanes = 4; lanes < 32; lanes *= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFF, value, lanes));
  }
  return value;
}
HP_DEVICE float sum_of_rows(float value) {
#pragma unroll
  for (int lanes = 4; lanes < 32; lanes *= 2) {
    value += __shfl_xor_sync(0xFFFFFFFF, value, lanes);
  }
  return value;
}

// A thread's share of one column, in its two rows of each block of values.
template <DecodeConfig kConfig>
struct DecodeColumn {
  static constexpr int kSums = 2 * value_blocks(kConfig);
  float reference;  // scaled
  float weights;
  float sums[kSums];
};

// Combines two states of a column; a state without keys has weight 0 and is ignored.
template <DecodeConfig kConfig>
HP_DEVICE void add_state(DecodeColumn<kConfig>& own, const DecodeColumn<kConfig>& other) {
  const bool begun = own.weights != 0;
  const bool adds = other.weights != 0;
  const float both = fmaxf(other.reference, own.reference);
  const float most = begun ? (adds ? both : own.reference) : other.reference;
  const float before = begun ? exp2_fast(own.reference - most) : 0.0F;
  const float factor = adds ? exp2_fast(other.reference - most) : 0.0F;
  own.reference = most;
  own.weights = own.weights * before + other.weights * factor;
#pragma unroll
  for (int i = 0; i < own.kSums; ++i) own.sums[i] = own.sums[i] * before + other.sums[i] * factor;
}

// The thread's first element of the head's result.
template <DecodeConfig kConfig>
HP_DEVICE int value_of(const DecodePlace& place) {
  return (splits_keys(kConfig) ? 0 : place.warpgroup * value_blocks(kConfig) * 64) + place.row;
}

// The distance of its i-th element, the other rows of DecodeColumn::sums, from the first.
HP_DEVICE int value_step(int i) { return i / 2 * 64 + i % 2 * 8; }

HP_DEVICE float natural(float log2) {
  constexpr float kLn2 = 0.6931471805599453F;
  return log2 * kLn2;
}

HP_DEVICE std::int64_t offset_of(const AttentionStrides& strides, int batch, int query,
                                 std::int64_t head) {
  return batch * strides.batch + query * strides.row + head * strides.head;
}

template <Element kOutput>
HP_DEVICE void store_value(void* output, std::int64_t at, float value) {
  if constexpr (kOutput == Element::F32) {
    static_cast<float*>(output)[at] = value;
  } else {
    static_cast<std::uint16_t*>(output)[at] =
        static_cast<std::uint16_t>(pack<kOutput>(value, value));
  }
}

// Stores the thread's elements of a column, from element `at` on, and lse if it is not null.
template <Element kOutput, DecodeConfig kConfig>
HP_DEVICE void store_column(const DecodeColumn<kConfig>& own, void* output, std::int64_t at,
                            float* lse) {
  const bool any = own.weights != 0;  // NaN too
  const float factor = any ? 1 / own.weights : 0.0F;
#pragma unroll
  for (int i = 0; i < own.kSums; ++i) {
    store_value<kOutput>(output, at + value_step(i), any ? own.sums[i] * factor : 0.0F);
  }
  if (lse == nullptr) return;
  *lse = any ? natural(own.reference + log2f(own.weights)) : decode_nothing();
}

}  // namespace harpe::device
