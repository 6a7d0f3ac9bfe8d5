#pragma once

#include "exec/cuda/kernels/backward/device/backward_args.h"

namespace harpe::device {

struct RowPlace {
  int batch;
  int head;
  int row;
};

// Stores the thread's two rows of an accumulator, the first at `at`, times `factor`. With `adds` or
// `to.carry` it adds to what is there, else it overwrites. A quad writes 32 bytes at once.
template <int N>
HP_DEVICE void store_sums(const BackwardSums& to, const RowPlace& at, int rows, bool adds,
                          float factor, const float (&sums)[N]) {
  const int lane = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = at.row + 8 * half;
    if (row >= rows) continue;
    auto* const pairs =
        reinterpret_cast<float2*>(to.data + at.batch * to.strides.batch +
                                  at.head * to.strides.head + row * to.strides.row) +
        lane;
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const float2 before = adds || to.carry ? pairs[i] : float2{0, 0};
      pairs[i] = {fmaf(sums[i + 2 * half], factor, before.x),
                  fmaf(sums[i + 2 * half + 1], factor, before.y)};
    }
  }
}

}  // namespace harpe::device
