#pragma once

#include "bench/cuda/device/elements.cuh"

namespace harpe::bench {

// The finaliser of splitmix64.
__device__ inline std::uint64_t scrambled(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// In (0, 1).
__device__ inline float unit_interval(std::uint32_t bits) {
  return (static_cast<float>(bits >> 8) + 0.5f) * 0x1p-24f;
}

__device__ inline float draw(const FillArgs& args, std::uint64_t index) {
  const std::uint64_t bits = scrambled(args.seed + (index + 1) * 0x9e3779b97f4a7c15ULL);
  const float u = unit_interval(static_cast<std::uint32_t>(bits));
  if (args.distribution == Distribution::Uniform) return 2 * u - 1;
  const float angle = unit_interval(static_cast<std::uint32_t>(bits >> 32));
  return sqrtf(-2 * logf(u)) * cospif(2 * angle);
}

__device__ inline void fill(const FillArgs& args) {
  const std::int64_t count = args.to.rows * args.to.columns;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; index < count; index += threads) {
    const std::int64_t row = index / args.to.columns;
    const std::int64_t at = row * args.to.stride + index % args.to.columns;
    store_element(args.to.address, at, args.to.element,
                  draw(args, static_cast<std::uint64_t>(index)) + args.shift);
  }
}

__device__ inline std::uint64_t nanoseconds_now() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ inline void spin(const SpinArgs& args) {
  const std::uint64_t start = nanoseconds_now();
  while (nanoseconds_now() - start < args.nanoseconds) {
  }
}

}  // namespace harpe::bench
