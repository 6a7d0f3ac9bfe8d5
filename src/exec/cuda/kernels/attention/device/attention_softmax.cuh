#pragma once

#include "exec/cuda/device/fast_math.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/attention/device/attention_config.h"

// The running softmax of the two query rows of a thread. In an accumulator [64, N] of a warpgroup,
// thread t holds rows r = 16 (t / 32) + t % 32 / 4 and r + 8, and of each eight columns the two
// from 2 (t % 4) on: values 4 j and 4 j + 1 belong to row r, 4 j + 2 and 4 j + 3 to row r + 8. The
// four threads of a quad share their rows.
namespace harpe::device {

HP_DEVICE float minus_infinity() { return __int_as_float(static_cast<int>(0xFF800000)); }

HP_DEVICE float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 2));
}

HP_DEVICE float quad_sum(float x) {
  x += __shfl_xor_sync(0xFFFFFFFF, x, 1);
  return x + __shfl_xor_sync(0xFFFFFFFF, x, 2);
}

// Weights are 2^(score scale_log2 - reference). The reference of a row is at most `slack` (in
// scores) below the row's maximum so far. A quad shares references; `sum` covers the thread's own
// columns.
struct SoftmaxRows {
  float reference[2];  // scaled; 0 until a key is visible
  float limit[2];      // a score above it moves the reference; -inf at first
  float sum[2];

  HP_DEVICE static SoftmaxRows empty() {
    return {{0, 0}, {minus_infinity(), minus_infinity()}, {0, 0}};
  }

  // Sets the state of keys whose normalised result has this `lse` (natural logarithm).
  HP_DEVICE void carry(int row, float lse, float scale_log2, float slack, bool first_of_quad) {
    constexpr float kLog2E = 1.4426950408889634F;
    const bool any = lse > minus_infinity();
    reference[row] = any ? lse * kLog2E : 0.0F;
    limit[row] = any ? reference[row] / scale_log2 + slack : minus_infinity();
    sum[row] = any && first_of_quad ? 1.0F : 0.0F;
  }
};

// The largest score of each of the thread's rows.
template <int N>
HP_DEVICE void row_maxima(const float (&scores)[N], float (&maxima)[2]) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float even = scores[2 * row];
    float odd = scores[2 * row + 1];
#pragma unroll
    for (int i = 4; i < N; i += 4) {
      even = fmaxf(even, scores[i + 2 * row]);
      odd = fmaxf(odd, scores[i + 2 * row + 1]);
    }
    maxima[row] = fmaxf(even, odd);
  }
}

// Moves the references to the maxima of the quads and rescales the sums. The caller multiplies the
// outputs so far by `factors`.
HP_DEVICE void move_references(SoftmaxRows& rows, const float (&maxima)[2], float scale_log2,
                               float slack, float (&factors)[2]) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float before = rows.limit[row];
    const float maximum = fmaxf(quad_max(maxima[row]), before - slack);
    const bool any = maximum > minus_infinity();
    const float reference = any ? maximum * scale_log2 : 0.0F;
    factors[row] = before > minus_infinity() ? exp2_fast(rows.reference[row] - reference) : 0.0F;
    rows.reference[row] = reference;
    rows.limit[row] = maximum + slack;
    rows.sum[row] *= factors[row];
  }
}

// Turns scores into weights in place and adds them to the sums.
template <int N>
HP_DEVICE void exponentiate(float (&scores)[N], SoftmaxRows& rows, float scale_log2) {
  float sums[2][2] = {{rows.sum[0], 0}, {rows.sum[1], 0}};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int row = i / 2 % 2;
    const float exponent = fmaf(scores[i], scale_log2, -rows.reference[row]);
    scores[i] = exp2_fast(exponent);
    sums[row][i % 2] += scores[i];
  }
#pragma unroll
  for (int row = 0; row < 2; ++row) rows.sum[row] = sums[row][0] + sums[row][1];
}

// The columns [low, high) that a row of the thread sees, counted from the thread's first column.
struct VisibleColumns {
  int low;
  int high;
};

template <int N>
HP_DEVICE void hide(float (&scores)[N], const VisibleColumns (&visible)[2], bool low_too) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int column = i / 4 * 8 + i % 2;
    if (column >= visible[i / 2 % 2].high) scores[i] = minus_infinity();
  }
  if (!low_too) return;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int column = i / 4 * 8 + i % 2;
    if (column < visible[i / 2 % 2].low) scores[i] = minus_infinity();
  }
}

}  // namespace harpe::device
