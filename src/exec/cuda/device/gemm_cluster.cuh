#pragma once

#include "exec/cuda/device/gemm_store.cuh"

// Tiles whose K is shared by the blocks of a cluster. Every block leaves its sums in its own shared
// memory, where the tile's last stages were; then each adds up some boxes of C, part after part, so
// that the result is always the same, and stores them.
namespace harpe::device {

// The four sums at `quad` of this thread in block `part`: 128 threads side by side.
template <GemmConfig kConfig>
HP_DEVICE std::uint32_t quad_of(const GemmShared<kConfig>& shared, int consumer, int quad) {
  constexpr int kQuads = kConfig.tile_n / 8;
  const auto thread = static_cast<std::uint32_t>(threadIdx.x % 128);
  return shared_address(shared.a(0)) +
         (static_cast<std::uint32_t>(consumer * kQuads + quad) * 128 + thread) * 16;
}

// One warp: tells all blocks of the cluster.
template <GemmConfig kConfig>
HP_DEVICE void arrive_everywhere(Barrier* barrier) {
  __syncwarp();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane < kConfig.k_cluster) arrive_release_at(barrier, lane);
}

template <GemmConfig kConfig>
HP_DEVICE void leave_sums(const GemmShared<kConfig>& shared, int consumer,
                          const float (&sums)[kConfig.slices()][kConfig.tile_n / 2]) {
#pragma unroll
  for (int quad = 0; quad < kConfig.tile_n / 8; ++quad) {
    const float* from = &sums[0][quad * 4];
    store_quad(quad_of<kConfig>(shared, consumer, quad), from[0], from[1], from[2], from[3]);
  }
  fence_proxy_async_shared();  // the copy engine writes stages there again
}

// Box `box` of this consumer's rows, from all parts in order. Loads of two or three are on their
// way at once, as registers allow.
template <GemmConfig kConfig>
HP_DEVICE void sum_box(const GemmShared<kConfig>& shared, int consumer, int box,
                       float (&sums)[kConfig.store_columns() / 2]) {
  constexpr int kQuads = kConfig.store_columns() / 8;
  constexpr int kAtOnce = kConfig.k_cluster < 4 ? kConfig.k_cluster : 2;
  const std::uint32_t first = quad_of<kConfig>(shared, consumer, box * kQuads);
#pragma unroll
  for (int at = 0; at < kQuads * 4; ++at) sums[at] = 0.0F;
#pragma unroll kAtOnce
  for (int part = 0; part < kConfig.k_cluster; ++part) {
    const std::uint32_t from = address_in(first, static_cast<std::uint32_t>(part));
    float4 values[kQuads];
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
      values[quad] = load_quad_cluster(from + quad * (128 * 16));
    }
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
      sums[quad * 4] += values[quad].x;
      sums[quad * 4 + 1] += values[quad].y;
      sums[quad * 4 + 2] += values[quad].z;
      sums[quad * 4 + 3] += values[quad].w;
    }
  }
}

// Whether what some block of the cluster multiplied never arrived.
template <GemmConfig kConfig>
HP_DEVICE bool poisoned_anywhere(const GemmShared<kConfig>& shared) {
  std::uint32_t poisoned = 0;
#pragma unroll
  for (int part = 0; part < kConfig.k_cluster; ++part) {
    poisoned |= load_cluster(
        address_in(shared_address(&shared.control().poisoned), static_cast<std::uint32_t>(part)));
  }
  return poisoned != 0;
}

// What a consumer does with its part of a tile.
template <GemmConfig kConfig>
HP_DEVICE void share_sums(const GemmArgs& args, const GemmShared<kConfig>& shared,
                          const GemmWalk<kConfig>& walk, int consumer,
                          float (&sums)[kConfig.slices()][kConfig.tile_n / 2], std::uint32_t parity,
                          Ring<kConfig.boxes>& boxes) {
  constexpr int kRead = 3;  // a named barrier: no stage is read any more
  auto& control = shared.control();
  sync_threads(kRead, 256);
  if (walk.blocks() == 0) {
#pragma unroll
    for (float& sum : sums[0]) sum = 0.0F;
  }
  wait_barrier_cluster(&control.taken, parity ^ 1);
  leave_sums<kConfig>(shared, consumer, sums);
  arrive_everywhere<kConfig>(&control.left[consumer]);
  wait_barrier_cluster(&control.left[consumer], parity);
  const bool skip =
      args.waits > 0 && any_of_threads(1 + consumer, 128, poisoned_anywhere<kConfig>(shared));
#pragma unroll 1
  for (int box = first_box<kConfig>(consumer); box < kConfig.boxes_per_slice();
       box += kConfig.k_cluster) {
    float sum[kConfig.store_columns() / 2];
    sum_box<kConfig>(shared, consumer, box, sum);
    wait_barrier(&control.stored[consumer][boxes.slot], boxes.parity ^ 1);
    if (skip) {
      if (threadIdx.x % 128 == 0) control.skipped[consumer][boxes.slot] = 1;
    } else {
      write_box<kConfig>(shared_address(shared.box(consumer, boxes.slot)), sum, 0);
    }
    pass_box<kConfig>(shared, consumer, boxes);
    if (skip) break;
  }
  arrive_everywhere<kConfig>(&control.taken);
}

}  // namespace harpe::device
