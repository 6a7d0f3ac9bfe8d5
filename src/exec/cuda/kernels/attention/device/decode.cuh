#pragma once

#include "exec/cuda/kernels/attention/device/decode_consumer.cuh"
#include "exec/cuda/kernels/attention/device/decode_producer.cuh"

// Attention of few queries a sequence over many keys, where reading these decides. All tiles of
// keys, of one (sequence, key head) after the other, are cut into equal shares, one for each block
// of the grid, of which all are resident or not: none waits for another. Lengths and pages are
// known as the kernel runs.
namespace harpe::device {

// `memory` is the dynamic shared memory: shared_bytes(kConfig) of it, aligned to 1,024.
template <DecodeConfig kConfig>
HP_DEVICE void decode(const DecodeArgs& args, std::uint8_t* memory) {
  static_assert(valid(kConfig));
  const DecodeShared<kConfig> shared(memory);
  const int warp = __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp == kDecodeWarps) {
    shared.init_barriers();
    if (threadIdx.x % 32 == 0) {
      prefetch_map(&args.queries);
      prefetch_map(&args.keys);
      prefetch_map(&args.values);
    }
  }
  __syncthreads();
  let_next_kernel_begin();
  if (warp == kDecodeWarps) {
    DecodeProducer<kConfig>(args, shared).run();
  } else {
    if (threadIdx.x == 0) shared.note_results(args);
    await_kernel_before();
    DecodeConsumer<kConfig>(args, shared).run();
  }
}

}  // namespace harpe::device
