#pragma once

#include "exec/cuda/device/copy.cuh"
#include "exec/cuda/kernels/attention/device/attention_consumer.cuh"
#include "exec/cuda/kernels/attention/device/attention_producer.cuh"

// Attention forward: output = softmax(scale Q K^T + mask) V and its log-sum-exp, over keys that may
// still be arriving. Persistent thread blocks of one producer warpgroup and `consumers` consumer
// warpgroups. Launched with at most one block per query tile; all blocks are resident.
namespace harpe::device {

// One thread of a copying block: the shared memory of tiles is its ring of granules.
template <AttentionConfig kConfig>
HP_DEVICE void copy_granules(const AttentionArgs& args, std::uint8_t* memory) {
  static_assert(kCopySlots * kCopyGranule <= kAttentionCopyBytes);
  auto* const filled =
      reinterpret_cast<Barrier*>(memory + shared_bytes(kConfig) - kAttentionSyncBytes);
  for (int slot = 0; slot < kCopySlots; ++slot) init_barrier(&filled[slot], 1);
  fence_barrier_init();
  Waiter waiter(args.wait);
  CopyRun(args.copies, args.copy_count, static_cast<int>(blockIdx.x), args.copy_blocks,
          reinterpret_cast<char*>(memory), filled)
      .finish(waiter);
}

// By one thread: prefetches the maps of the first loads, as they are with one chunk of keys.
HP_DEVICE void prefetch_first_maps(const AttentionArgs& args) {
  prefetch_map(&args.panels[args.panel_count - 1].queries);
  prefetch_map(&args.chunks[0].keys);
  prefetch_map(&args.chunks[0].values);
}

// By one thread of each of the producer's other three warps: prefetches all other maps. Prefetches
// of one thread run one after the other, so no other role waits for these.
HP_DEVICE void prefetch_maps(const AttentionArgs& args, int warp) {
  if (warp == 1) {
#pragma unroll 1
    for (int i = 1; i < args.chunk_count; ++i) prefetch_map(&args.chunks[i].keys);
  } else if (warp == 2) {
#pragma unroll 1
    for (int i = 1; i < args.chunk_count; ++i) prefetch_map(&args.chunks[i].values);
  } else {
#pragma unroll 1
    for (int i = 0; i < args.panel_count - 1; ++i) prefetch_map(&args.panels[i].queries);
  }
}

// The whole kernel. The first args.copy_blocks thread blocks copy. `memory` is the dynamic shared
// memory: shared_bytes(kConfig) bytes, aligned to 1,024.
template <AttentionConfig kConfig>
HP_DEVICE void attention(const AttentionArgs& args, std::uint8_t* memory) {
  static_assert(valid(kConfig));
  const AttentionShared<kConfig> shared(memory);
  const int block = static_cast<int>(blockIdx.x) - args.copy_blocks;
  if (block < 0) {
    if (threadIdx.x == 0) {
      note_begin(args.wait, true);
      copy_granules<kConfig>(args, memory);
      note_end(args.wait);
    }
    return;
  }
  if (block >= args.tiles * args.slices) return;
  const int warp = __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x) / 32, 0);
  QueryTile first{};
  if (threadIdx.x == 0) {
    prefetch_first_maps(args);
    note_begin(args.wait, false);
    first = query_tile<kConfig>(args, block);
  }
  if (warp == 1) shared.init_barriers();
  __syncthreads();
  if (warp < kWarpgroup / 32) {
    shrink_registers<kConfig.producer_registers>();
    if (threadIdx.x == 0) {
      AttentionProducer<kConfig>(args, shared).run(first);
    } else if (threadIdx.x % 32 == 0) {
      prefetch_maps(args, warp);
    }
  } else {
    grow_registers<kConfig.consumer_registers>();
    AttentionConsumer<kConfig>(args, shared, warp * 32 / kWarpgroup - 1).run();
    if (threadIdx.x % kWarpgroup == 0) note_end(args.wait);
  }
}

}  // namespace harpe::device
