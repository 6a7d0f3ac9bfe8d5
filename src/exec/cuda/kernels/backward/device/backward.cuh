#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/kernels/backward/device/backward_adder.cuh"
#include "exec/cuda/kernels/backward/device/backward_consumer.cuh"

// Attention backward on tensor cores: five matrix products per step. A thread block computes dk and
// dv of 128 keys. Step by step it adds to dq of the queries that it meets, in a fixed order among
// blocks (backward_walk.h).
namespace harpe::device {

// By one thread.
HP_DEVICE void prefetch_backward_maps(const BackwardArgs& args) {
  prefetch_map(&args.q);
  prefetch_map(&args.k);
  prefetch_map(&args.v);
  prefetch_map(&args.d_o);
  prefetch_map(&args.dq);
}

// By one thread. A block that has drawn a ticket is running, and it waits only for lower tickets,
// so all blocks make progress. The last draw resets the counter for the next launch.
HP_DEVICE int draw_backward_ticket(const BackwardArgs& args) {
  const auto drawn = static_cast<int>(atomicAdd(args.ticket, 1U));
  if (drawn == backward_items(args.grid) - 1) store_relaxed_system(args.ticket, 0);
  return drawn;
}

// The whole kernel, for backward_items() thread blocks. `memory` is the dynamic shared memory:
// shared_bytes(kConfig) bytes, aligned to 1,024.
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
