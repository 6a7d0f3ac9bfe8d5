#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/kernels/plain/device/plain_args.h"

// (o, l) = (o, l) combined with (o2, l2): o normalised rows, l natural logarithms. A side whose l
// is -inf is the identity, whatever its o holds.
namespace harpe::device {

HP_DEVICE std::int64_t warp_of_grid() { return thread_of_grid() / 32; }
HP_DEVICE std::int64_t warps_of_grid() { return threads_of_grid() / 32; }

// By a warp. With d = l2 - l the weights are 1 / (1 + e^d) and 1 / (1 + e^-d): the larger first, so
// that the exponential never overflows. In f64, as on the host.
template <class Real>
HP_DEVICE void combine_row(Real* o, Real* l, const Real* o2, const Real* l2,
                           std::int64_t value_dim) {
  const Real mine = *l;
  const Real other = *l2;
  if (other == none<Real>()) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Real weight = 0;
  Real weight2 = 1;
  Real sum = other;
  if (mine != none<Real>()) {
    const double difference = static_cast<double>(other) - static_cast<double>(mine);
    const double e = exp(-fabs(difference));
    const double larger = 1.0 / (1.0 + e);
    weight = static_cast<Real>(difference > 0 ? e * larger : larger);
    weight2 = static_cast<Real>(difference > 0 ? larger : e * larger);
    sum = static_cast<Real>(static_cast<double>(difference > 0 ? other : mine) + log1p(e));
  }
  for (std::int64_t i = lane; i < value_dim; i += 32) {
    o[i] = mine == none<Real>() ? o2[i] : o[i] * weight + o2[i] * weight2;
  }
  __syncwarp();  // all have read l
  if (lane == 0) *l = sum;
}

template <class Real>
HP_DEVICE void combine(const CombineArgs& args) {
  for (std::int64_t at = warp_of_grid(); at < args.all_rows; at += warps_of_grid()) {
    const std::int64_t turn = at / args.rows;
    const std::int64_t row = at - turn * args.rows;
    std::int64_t offsets[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) offsets[i] = row * args.row_bytes[i];
    add_offsets(args.nest, 0, args.nest.count, turn, offsets);
    combine_row(static_cast<Real*>(moved(args.o, offsets[0])),
                static_cast<Real*>(moved(args.l, offsets[1])),
                static_cast<const Real*>(moved(args.o2, offsets[2])),
                static_cast<const Real*>(moved(args.l2, offsets[3])), args.value_dim);
  }
}

}  // namespace harpe::device
