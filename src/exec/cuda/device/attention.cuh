#pragma once

#include "exec/cuda/device/attention_consumer.cuh"
#include "exec/cuda/device/attention_producer.cuh"

// Attention forward: output = softmax(scale Q K^T + mask) V and its log-sum-exp, over keys that may
// still be arriving. Persistent blocks of one producing warpgroup and `consumers` consuming ones.
// Launched with at most as many blocks as there are query tiles, all resident.
namespace harpe::device {

template <AttentionConfig kConfig>
HP_DEVICE void attention(const AttentionArgs& args) {
  static_assert(valid(kConfig));
  extern __shared__ __align__(1024) std::uint8_t memory[];
  const AttentionShared<kConfig> shared(memory);
  const int block = static_cast<int>(blockIdx.x) - args.first_block;
  if (block < 0 || block >= args.tiles * args.slices) return;
  if (threadIdx.x == 0) shared.init_barriers();
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
