#pragma once

#include "exec/cuda/device/attention_consumer.cuh"
#include "exec/cuda/device/attention_producer.cuh"
#include "exec/cuda/device/copy.cuh"

// Attention forward: output = softmax(scale Q K^T + mask) V and its log-sum-exp, over keys that may
// still be arriving. Persistent blocks of one producing warpgroup and `consumers` consuming ones.
// Launched with at most as many blocks as there are query tiles, all resident.
namespace harpe::device {

// One thread of a block that copies: all the shared memory of tiles is its ring.
template <AttentionConfig kConfig>
HP_DEVICE void copy_granules(const AttentionArgs& args, std::uint8_t* memory) {
  static_assert(kCopySlots * kCopyGranule <= kAttentionCopyBytes);
  auto* const filled =
      reinterpret_cast<Barrier*>(memory + shared_bytes(kConfig) - kAttentionSyncBytes);
  for (int slot = 0; slot < kCopySlots; ++slot) init_barrier(&filled[slot], 1);
  fence_barrier_init();
  Waiter waiter(args.wait, current_epoch(args.wait));
  run_copies(args.copies, args.copy_count, static_cast<int>(blockIdx.x), args.copy_blocks, waiter,
             reinterpret_cast<char*>(memory), filled);
}

// By all threads of a block: of each table the first maps that it will use.
HP_DEVICE void prefetch_maps(const AttentionArgs& args) {
  const int thread = static_cast<int>(threadIdx.x) - 32;
  if (thread < 0) return;
  if (thread < args.panel_count) prefetch_map(&args.panels[thread].queries);
  if (thread >= args.chunk_count) return;
  prefetch_map(&args.chunks[thread].keys);
  prefetch_map(&args.chunks[thread].values);
}

// The whole kernel. The first args.copy_blocks blocks copy. `memory` is the dynamic shared memory:
// shared_bytes(kConfig) of it, aligned to 1,024.
template <AttentionConfig kConfig>
HP_DEVICE void attention(const AttentionArgs& args, std::uint8_t* memory) {
  static_assert(valid(kConfig));
  const AttentionShared<kConfig> shared(memory);
  const int block = static_cast<int>(blockIdx.x) - args.copy_blocks;
  if (block < 0) {
    if (threadIdx.x == 0) copy_granules<kConfig>(args, memory);
    return;
  }
  if (block >= args.tiles * args.slices) return;
  if (threadIdx.x == 0) shared.init_barriers();
  prefetch_maps(args);
  __syncthreads();
  const int warpgroup = __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (warpgroup == 0) {
    shrink_registers<kConfig.producer_registers>();
    if (threadIdx.x == 0) AttentionProducer<kConfig>(args, shared).run();
  } else {
    grow_registers<kConfig.consumer_registers>();
    AttentionConsumer<kConfig>(args, shared, warpgroup - 1).run();
  }
}

}  // namespace harpe::device
