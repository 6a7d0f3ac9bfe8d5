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
  // The same place, of which the compiler computes nothing ahead: it would take registers that
  // tiles need.
  [[nodiscard]] HP_DEVICE DecodePlace anew() const {
    DecodePlace place = *this;
    asm volatile("" : "+r"(place.thread), "+r"(place.lane));
    return place;
  }
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

// The reference of a state, unless it is without keys.
template <DecodeConfig kConfig>
HP_DEVICE float reference_of(const DecodeColumn<kConfig>& state) {
  return state.weights != 0 ? state.reference : decode_nothing();  // NaN too
}

// Moves a state to a reference that is no lower.
template <DecodeConfig kConfig>
HP_DEVICE void rescale(DecodeColumn<kConfig>& state, float reference) {
  const float factor = state.weights != 0 ? exp2_fast(state.reference - reference) : 0.0F;
  state.reference = reference;
  state.weights *= factor;
#pragma unroll
  for (int i = 0; i < state.kSums; ++i) state.sums[i] *= factor;
}

// Adds a state to one whose reference is no lower.
template <DecodeConfig kConfig>
HP_DEVICE void add_scaled(DecodeColumn<kConfig>& own, const DecodeColumn<kConfig>& other) {
  const float factor = other.weights != 0 ? exp2_fast(other.reference - own.reference) : 0.0F;
  own.weights += other.weights * factor;
#pragma unroll
  for (int i = 0; i < own.kSums; ++i) own.sums[i] += other.sums[i] * factor;
}

// Adds a state to another; one without keys has weight 0 and is ignored.
template <DecodeConfig kConfig>
HP_DEVICE void add_state(DecodeColumn<kConfig>& own, const DecodeColumn<kConfig>& other) {
  rescale(own, fmaxf(reference_of(own), reference_of(other)));
  add_scaled(own, other);
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
HP_DEVICE void store_value(void* output, int at, float value) {
  if constexpr (kOutput == Element::F32) {
    static_cast<float*>(output)[at] = value;
  } else {
    static_cast<std::uint16_t*>(output)[at] =
        static_cast<std::uint16_t>(pack<kOutput>(value, value));
  }
}

// Where a thread stores a column. It is found before the states to join have come, in time that is
// free.
struct DecodeTarget {
  void* output;  // the thread's first element; null: nothing is stored
  float* lse;    // null: another thread stores it, or none
  float4* kept;  // not null: the state is kept here instead (DecodeExchange::kept)
};

// Element `at` of an output.
template <Element kOutput>
HP_DEVICE void* element_of(void* output, std::int64_t at) {
  constexpr int kBytes = kOutput == Element::F32 ? 4 : 2;
  return static_cast<std::uint8_t*>(output) + at * kBytes;
}

// Stores the thread's elements of a column, and lse.
template <Element kOutput, DecodeConfig kConfig>
HP_DEVICE void store_column(const DecodeColumn<kConfig>& own, const DecodeTarget& to) {
  const bool any = own.weights != 0;  // NaN too
  const float factor = any ? reciprocal_fast(own.weights) : 0.0F;
#pragma unroll
  for (int i = 0; i < own.kSums; ++i) {
    store_value<kOutput>(to.output, value_step(i), any ? own.sums[i] * factor : 0.0F);
  }
  if (to.lse == nullptr) return;
  *to.lse = any ? natural(own.reference + log2_fast(own.weights)) : decode_nothing();
}

}  // namespace harpe::device
