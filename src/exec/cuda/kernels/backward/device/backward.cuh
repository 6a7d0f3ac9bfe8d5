#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/kernels/backward/device/backward_adder.cuh"
#include "exec/cuda/kernels/backward/device/backward_consumer.cuh"

// The gradients of attention for tensor cores: five products of matrices. A block makes the
// gradients of 128 keys and adds, step by step, to those of the queries that it meets, always in
// the same order among blocks (backward_walk.h).
namespace harpe::device {

// By one thread.
HP_DEVICE void prefetch_backward_maps(const BackwardArgs& args) {
  prefetch_map(&args.q);
  prefetch_map(&args.k);
  prefetch_map(&args.v);
  prefetch_map(&args.d_o);
  prefetch_map(&args.dq);
}

// By one thread. Who has drawn a ticket runs, and waits for lower ones alone: so all get on.
HP_DEVICE int draw_backward_ticket(const BackwardArgs& args) {
  const auto drawn = static_cast<int>(atomicAdd(args.ticket, 1U));
  if (drawn == backward_items(args.grid) - 1) store_relaxed_system(args.ticket, 0);
  return drawn;
}

// The whole kernel, by backward_items() blocks. `memory` is the dynamic shared memory:
// shared_bytes(kConfig) of it, aligned to 1,024.
template <BackwardConfig kConfig>
HP_DEVICE void backward(const BackwardArgs& args, std::uint8_t* memory) {
  static_assert(valid(kConfig));
  const BackwardShared<kConfig> shared(memory);
  const int warp = __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x) / 32, 0);
  if (threadIdx.x == 0) {
    shared.sync().work = backward_work(args.grid, draw_backward_ticket(args));
    prefetch_backward_maps(args);
  }
  if (warp == 1) init_backward_barriers(shared.sync());
  __syncthreads();
  if (warp < kWarpgroup / 32) {
    shrink_registers<kConfig.producer_registers>();
    if (warp >= 2) {
      BackwardAdder<kConfig>(args, shared, warp - 2).run();
    } else if (warp == 1) {
      BackwardProducer<kConfig>(args, shared).bring_numbers();
    } else if (elected()) {
      BackwardProducer<kConfig>(args, shared).bring_matrices();
    }
  } else {
    grow_registers<kConfig.consumer_registers>();
    const int warpgroup = warp * 32 / kWarpgroup - 1;
    BackwardConsumer<kConfig>(args, shared, warpgroup).run();
  }
}

}  // namespace harpe::device
