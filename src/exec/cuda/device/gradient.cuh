#pragma once

#include "exec/cuda/device/gradient_consumer.cuh"

// The gradients of attention for tensor cores. Blocks make 128 rows of dk and dv, or 128 rows of
// dq, whole: nobody adds to what others write, so results do not depend on who runs when. That
// costs the scores and the products of values twice: seven products of matrices for five. Where
// keys are few, the blocks of a cluster share the queries that meet them.
namespace harpe::device {

template <GradientConfig kConfig, GradientSide kSide>
HP_DEVICE void produce_gradient(const GradientArgs& args, int block, std::uint8_t* memory) {
  const GradientShared<kConfig, kSide> shared(memory);
  const GradientWork work = gradient_work<kSide>(args, block);
  GradientProducer<kConfig, kSide> producer(args, shared, work);
  if (threadIdx.x == 0) producer.bring_matrices();
  if constexpr (kSide == GradientSide::Keys) {
    const int thread = static_cast<int>(threadIdx.x) - 32;
    if (thread >= 0 && thread < column_tile(kSide)) producer.bring_numbers(thread);
  }
}

template <GradientConfig kConfig, GradientSide kSide>
HP_DEVICE void consume_gradient(const GradientArgs& args, int block, int warpgroup,
                                std::uint8_t* memory) {
  const GradientShared<kConfig, kSide> shared(memory);
  const GradientWork work = gradient_work<kSide>(args, block);
  GradientConsumer<kConfig, kSide>(args, shared, work, warpgroup).run();
}

// By one thread.
HP_DEVICE void prefetch_gradient_maps(const GradientArgs& args) {
  prefetch_map(&args.q);
  prefetch_map(&args.k);
  prefetch_map(&args.v);
  prefetch_map(&args.d_o);
}

// The whole kernel, blocks for each tile of keys and then of queries; the last may have nothing to
// do. `memory` is the dynamic
// shared memory: shared_bytes(kConfig) of it, aligned to 1,024.
template <GradientConfig kConfig>
HP_DEVICE void gradient(const GradientArgs& args, std::uint8_t* memory) {
  static_assert(valid(kConfig));
  const int of_keys = args.keys.tiles * args.keys.slices * args.key_parts;
  const int block = static_cast<int>(blockIdx.x);
  if (block >= of_keys + args.queries.tiles * args.queries.slices) return;
  const GradientSide side = block < of_keys ? GradientSide::Keys : GradientSide::Queries;
  const int warp = __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x) / 32, 0);
  if (threadIdx.x == 0) prefetch_gradient_maps(args);
  if (warp == 1) {
    GradientSync& sync = GradientShared<kConfig, GradientSide::Keys>(memory).sync();
    init_gradient_barriers(sync, side);
  }
  __syncthreads();
  if (warp < kWarpgroup / 32) {
    shrink_registers<kConfig.producer_registers>();
    if (side == GradientSide::Keys) {
      produce_gradient<kConfig, GradientSide::Keys>(args, block, memory);
    } else {
      produce_gradient<kConfig, GradientSide::Queries>(args, block - of_keys, memory);
    }
  } else {
    grow_registers<kConfig.consumer_registers>();
    const int warpgroup = warp * 32 / kWarpgroup - 1;
    if (side == GradientSide::Keys) {
      consume_gradient<kConfig, GradientSide::Keys>(args, block, warpgroup, memory);
    } else {
      consume_gradient<kConfig, GradientSide::Queries>(args, block - of_keys, warpgroup, memory);
    }
  }
}

}  // namespace harpe::device
