#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/kernels/plain/device/plain_args.h"

// Dot products of rows, one warp per row: each lane sums every 32nd product, then the warp adds up
// its lanes.
namespace harpe::device {

template <class Real>
HP_DEVICE void row_dot(const RowDotArgs& args) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t at = warp_of_grid(); at < args.all_rows; at += warps_of_grid()) {
    const std::int64_t turn = at / args.rows;
    const std::int64_t row = at - turn * args.rows;
    std::int64_t offsets[3] = {row * args.a_bytes[0], row * args.b_bytes[0], row * args.c_bytes};
    add_offsets(args.nest, 0, args.nest.count, turn, offsets);
    const void* const a = moved(args.a, offsets[0]);
    const void* const b = moved(args.b, offsets[1]);
    Real sum = 0;
#pragma unroll 2
    for (std::int64_t i = lane; i < args.length; i += 32) {
      sum += load_number<Real>(moved(a, i * args.a_bytes[1]), args.number, 0) *
             load_number<Real>(moved(b, i * args.b_bytes[1]), args.number, 0);
    }
    sum = warp_sum(sum);
    if (lane == 0) store_number(moved(args.c, offsets[2]), args.c_number, 0, sum);
  }
}

}  // namespace harpe::device
