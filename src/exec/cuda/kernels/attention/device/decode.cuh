#pragma once

#include "exec/cuda/kernels/attention/device/decode_consumer.cuh"
#include "exec/cuda/kernels/attention/device/decode_producer.cuh"

// Attention of few queries per sequence over many keys, where reading the keys takes the time. All
// key tiles, of one (sequence, head group) pair after the other (decode_order.h), are cut into
// equal shares, one for each thread block. Not all blocks need be resident at once: a block waits
// only for states of lower blocks (decode_store.cuh). The kernel reads lengths and pages from
// memory.
namespace harpe::device {

// The consumers call these two functions. In a kernel that bounds the execution the first waits
// until the rank may store, and the second ends the execution after all stores.
inline constexpr int kBoundsBarrier = 5;

HP_DEVICE void begin_decode(const DecodeExchange& exchange, const Bounds& bounds) {
  if (bounds.ended == nullptr) return;
  if (threadIdx.x < 32) begin_bounds(exchange.wait, bounds);
  sync_threads(kBoundsBarrier, kDecodeConsumers);
}

HP_DEVICE void end_decode(const DecodeExchange& exchange, const Bounds& bounds) {
  if (bounds.ended == nullptr) return;
  sync_threads(kBoundsBarrier, kDecodeConsumers);
  if (threadIdx.x == 0) end_bounds(exchange.wait, bounds);
}

// `memory` is the dynamic shared memory: shared_bytes(kConfig) bytes, aligned to 1,024. `exchange`
// and `bounds` are null unless the kernel exchanges.
template <DecodeConfig kConfig>
HP_DEVICE void decode(const DecodeArgs& args, const DecodeExchange* exchange, const Bounds* bounds,
                      std::uint8_t* memory) {
  static_assert(valid(kConfig));
  const DecodeShared<kConfig> shared(memory);
  const int warp = __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp == kDecodeWarps) {
    shared.init_barriers();
    if (threadIdx.x % 32 == 0) {
      prefetch_map(&args.keys);
      prefetch_map(&args.values);
    }
  }
  __syncthreads();
  // A kernel that waits for other ranks lets the next one begin after that, unless it is alone on
  // its GPU.
  if (!kConfig.exchanges || bounds->ended != nullptr) let_next_kernel_begin();
  if (warp == kDecodeWarps) {
    DecodeProducer<kConfig>(args, shared).run();
  } else {
    if (threadIdx.x == 0) shared.note_results(args);
    if constexpr (kConfig.exchanges) shared.note_exchange(*exchange);
    await_kernel_before();
    if constexpr (kConfig.exchanges) {
      if (threadIdx.x == 0) note_begin(exchange->wait, false);
      begin_decode(*exchange, *bounds);
    }
    DecodeConsumer<kConfig>(args, shared).run();
    if constexpr (kConfig.exchanges) {
      end_decode(*exchange, *bounds);
      if (threadIdx.x == 0) note_end(exchange->wait);
    }
  }
}

}  // namespace harpe::device
