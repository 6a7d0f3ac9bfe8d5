#pragma once

#include "bench/cuda/device/elements.cuh"

namespace harpe::bench {

// The distance of `out` from `value`, in bounds. Infinities must agree.
__device__ inline double ratio_of(double out, double value, double bound) {
  if (out == value) return 0;
  const double ratio = fabs(out - value) / bound;
  return ratio == ratio ? ratio : __longlong_as_double(0x7ff0000000000000LL);
}

__device__ inline void compare(const CompareArgs& args) {
  const std::int64_t count = args.sample.count * args.out.columns;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  double worst = 0;
  for (; index < count; index += threads) {
    const std::int64_t row = sampled_row(args.sample, index / args.out.columns);
    const std::int64_t column = index % args.out.columns;
    const double out =
        load_element(args.out.address, row * args.out.stride + column, args.out.element);
    const double ratio = ratio_of(out, args.value[index], args.bound[index]);
    worst = fmax(worst, ratio);
    if (!(ratio <= 1)) {
      atomicAdd(reinterpret_cast<unsigned long long*>(&args.verdict->wrong), 1ULL);
      atomicMin(reinterpret_cast<unsigned long long*>(&args.verdict->first),
                static_cast<unsigned long long>(row * args.out.columns + column));
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&args.verdict->compared),
              static_cast<unsigned long long>(count));
  }
  // Non-negative values compare like their bits.
  if (worst > 0) {
    atomicMax(reinterpret_cast<unsigned long long*>(&args.verdict->worst),
              static_cast<unsigned long long>(__double_as_longlong(worst)));
  }
}

__device__ inline void guard(const GuardArgs& args) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  std::uint64_t altered = 0;
  for (; at < args.bytes; at += threads) {
    const std::int64_t inside = at - args.offset;
    const bool output = inside >= 0 && inside / args.stride_bytes < args.rows &&
                        inside % args.stride_bytes < args.row_bytes;
    if (!output && args.begin[at] != args.pattern) ++altered;
  }
  if (altered > 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&args.verdict->altered),
              static_cast<unsigned long long>(altered));
  }
}

}  // namespace harpe::bench
