#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/kernels/plain/device/join_args.h"

// Joins the partial states of attention for all parts of the keys, the last step of flash decoding.
// One warp per row. It weighs all parts against the largest logarithm and adds them in their order,
// so the bits are the same every time. A part whose l is -inf is ignored.
namespace harpe::device {

HP_DEVICE void join_parts(const JoinArgs& args) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t part_rows = std::int64_t{args.heads} * args.rows;
  for (std::int64_t at = warp_of_grid(); at < args.all_rows; at += warps_of_grid()) {
    const std::int64_t batch = at / part_rows;
    const std::int64_t row = at - batch * part_rows;
    const std::int64_t first = batch * args.parts * part_rows + row;
    float logs[kMostParts / 32];
    float most = none<float>();
#pragma unroll
    for (int i = 0; i < kMostParts / 32; ++i) {
      const int part = 32 * i + lane;
      logs[i] = part < args.parts ? args.l[first + part * part_rows] : none<float>();
      most = logs[i] > most ? logs[i] : most;
    }
    most = warp_max(most);
    const bool is_empty = most == none<float>();
    float weights = 0;
#pragma unroll
    for (int i = 0; i < kMostParts / 32; ++i) {
      logs[i] = is_empty ? 0.0F : expf(logs[i] - most);
      weights += logs[i];
    }
    weights = warp_sum(weights);
    const std::int64_t head = row / args.rows;
    const std::int64_t to = batch * args.to_strides.batch + head * args.to_strides.head +
                            (row - head * args.rows) * args.to_strides.row;
    for (int column = lane; column - lane < args.columns; column += 32) {
      float sum = 0;
      for (int part = 0; part < args.parts; ++part) {
        const float own = part < 32 ? logs[0] : logs[1];
        const float weight = __shfl_sync(0xffffffffU, own, part % 32);
        const bool counts = column < args.columns && weight > 0;
        if (counts) sum += weight * args.o[(first + part * part_rows) * args.columns + column];
      }
      if (column >= args.columns) continue;
      store_number(args.to, args.to_number, to + column, is_empty ? 0.0F : sum / weights);
    }
    if (lane != 0 || args.lse == nullptr) continue;
    args.lse[batch * args.lse_strides.batch + head * args.lse_strides.head +
             (row - head * args.rows) * args.lse_strides.row] =
        is_empty ? most : most + logf(weights);
  }
}

}  // namespace harpe::device
