#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/device/wait_args.h"
#include "exec/cuda/signals/device/clock_args.h"

// Timestamps for traces, by kernels of one warp.
namespace harpe::device {

// The time when the stream's earlier work is done and later work has not begun.
HP_DEVICE void stamp(const StampArgs& args) {
  if (threadIdx.x == 0) *args.at = global_timer();
}

HP_DEVICE std::uint64_t smallest_step() {
  constexpr int kLooks = 4096;
  std::uint64_t least = kNever;
  std::uint64_t before = global_timer();
#pragma unroll 1
  for (int i = 0; i < kLooks; ++i) {
    const std::uint64_t now = global_timer();
    if (now > before && now - before < least) least = now - before;
    before = now;
  }
  return least;
}

HP_DEVICE void answer_clock(const AnswerClockArgs& args) {
  if (threadIdx.x != 0) return;
  const std::uint64_t start = global_timer();
#pragma unroll 1
  for (std::uint32_t round = 1; round <= args.rounds; ++round) {
    while (load_acquire_system(&args.page->asked) != round) {
      if (global_timer() - start > args.limit_ns) return;
    }
    args.page->gpu_ns = global_timer();
    store_release_system(&args.page->answered, round);
  }
  args.page->step_ns = smallest_step();
  store_release_system(&args.page->answered, args.rounds + 1);
}

}  // namespace harpe::device
