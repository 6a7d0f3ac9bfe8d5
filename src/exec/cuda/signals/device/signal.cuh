#pragma once

#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/signals/device/signal_args.h"

// Signals between ranks by kernels of one warp between other kernels of a stream: earlier work of
// the stream is done, and later work sees what they acquired.
namespace harpe::device {

// Requires: a preceding fence at system scope, which releases what the thread did, and what it saw
// done, to a thread that acquires the signal.
HP_DEVICE void set_signal(const RaiseTarget& target, std::uint32_t epoch) {
  if (target.added != 0) {
    add_relaxed_system(target.word, target.added);
  } else {
    store_relaxed_system(target.word, epoch);
  }
}

// Called after stores of this thread's block have completed: counts them, and the last of
// `arrivals` calls raises the signal, behind all blocks' stores. `done` is zero before and after.
// The count stays on this GPU, so a fence at GPU scope precedes it, which takes less time while
// stores cross the link. Order is transitive: the last caller's fence covers the stores of all.
HP_DEVICE void count_stored(std::uint32_t* done, std::uint32_t arrivals, const RaiseTarget& target,
                            const WaitContext& context) {
  const std::uint32_t epoch = current_epoch(context);
  fence_gpu();
  // The fences before and after it order the data, so the count is relaxed.
  if (add_relaxed_gpu(done, 1) + 1 != arrivals) return;
  fence_system();
  set_signal(target, epoch);
  *done = 0;
}

// Poisons the rank that waits for the signal, so that its waits end.
HP_DEVICE void poison_peer(const RaiseTarget& target) {
  compare_exchange_system(target.peer_poison, 0, kPoisonedByPeer);
}

// Releases what this thread saw done to threads that acquire one of these signals. A poisoned rank
// raises no signal: it poisons the ranks that wait.
HP_DEVICE void raise_signals(const RaiseArgs& args) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= args.count) return;
  if (load_relaxed_system(args.poison) != 0) {
    poison_peer(args.targets[lane]);
  } else {
    fence_system();
    set_signal(args.targets[lane], load_relaxed_system(args.epoch));
  }
}

// By a warp of the first block. If the rank was poisoned after an earlier execution, tells the host
// and poisons the ranks that wait for it.
HP_DEVICE void raise_begins(const WaitContext& context, const Bounds& bounds, int lane) {
  const bool is_poisoned = load_relaxed_system(context.poison) != 0;
  if (lane < bounds.begin_count) {
    if (is_poisoned) {
      poison_peer(bounds.begins[lane]);
    } else {
      fence_system();
      set_signal(bounds.begins[lane], current_epoch(context));
    }
  }
  if (lane != 0) return;
  if (is_poisoned) tell_host(context);
  add_quietly_gpu(bounds.ended, kEpochOfEnded - bounds.arrivals);
}

// Called by a whole warp: waits until the rank may store; false if a wait failed. Threads that the
// warp then notifies see what other ranks released. With `raises`, the warp of the first block
// first raises the signals of the Entry.
HP_DEVICE bool begin_bounds(const WaitContext& context, const Bounds& bounds, bool raises = true) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (raises && blockIdx.x == 0) raise_begins(context, bounds, lane);
  bool is_there = true;
  if (lane < bounds.wait_count) {
    const SignalWait& own = bounds.waits[lane];
    WaitContext of_entry = context;
    of_entry.task = bounds.task;
    const std::uint32_t epoch = current_epoch(context) - own.epochs_back;
    is_there = poll_flag(of_entry, own.wait, epoch * own.wait.arrivals);
  }
  return __all_sync(0xffffffff, is_there);
}

// Called by one thread, which then sees what other ranks released; false if a wait failed.
HP_DEVICE bool await_exit(const WaitContext& context, const Bounds& bounds, std::uint32_t epoch) {
  WaitContext of_exit = context;
  of_exit.task = bounds.exit_task;
  for (int i = 0; i < bounds.exit_count; ++i) {
    const SignalWait& own = bounds.exits[i];
    const std::uint32_t target = (epoch - own.epochs_back) * own.wait.arrivals;
    if (!poll_flag(of_exit, own.wait, target)) return false;
  }
  return true;
}

// Each of `arrivals` threads calls this once its share of the kernel is done. If the Exit awaits or
// raises signals, the last one does so; if the rank is poisoned, that thread tells the host and
// poisons the ranks that wait for it.
HP_DEVICE void end_bounds(const WaitContext& context, const Bounds& bounds) {
  if (bounds.exit_count + bounds.end_count == 0) return add_quietly_gpu(bounds.ended, 1);
  fence_gpu();
  const std::uint64_t ended = add_relaxed_gpu(bounds.ended, 1) + 1;
  if (static_cast<std::uint32_t>(ended) != 0) return;
  const auto epoch = static_cast<std::uint32_t>(ended / kEpochOfEnded);
  const bool is_poisoned =
      !await_exit(context, bounds, epoch) || load_relaxed_system(context.poison) != 0;
  fence_system();
  if (is_poisoned) tell_host(context);
  for (int i = 0; i < bounds.end_count; ++i) {
    if (is_poisoned) {
      poison_peer(bounds.ends[i]);
    } else {
      set_signal(bounds.ends[i], epoch);
    }
  }
}

// Returns once all waits are reached, one has exceeded the limit, the rank is poisoned, or the host
// makes it give up; after every poll all lanes agree.
HP_DEVICE void await_signals(const AwaitArgs& args) {
  constexpr std::uint32_t kWarp = 0xffffffff;
  constexpr std::uint64_t kEagerNs = 1000;
  const int lane = static_cast<int>(threadIdx.x);
  const SignalWait& own = args.waits[lane < args.count ? lane : 0];
  const std::uint32_t target = (current_epoch(args.context) - own.epochs_back) * own.wait.arrivals;
  const std::uint64_t start = global_timer();
  while (true) {
    const std::uint32_t seen = load_acquire_system(own.wait.flag);
    const bool is_there = reached(seen, target);
    if (__all_sync(kWarp, is_there)) break;
    const WordPair poison = load_relaxed_system_pair(args.context.poison);
    if (__any_sync(kWarp, poison.first != 0)) {
      if (lane == 0) tell_host(args.context);
      return;
    }
    const std::uint64_t elapsed = global_timer() - start;
    const bool is_told = __any_sync(kWarp, poison.second != 0);
    if (is_told || __any_sync(kWarp, elapsed > args.context.limit_ns)) {
      const std::uint32_t state = is_told ? kGivenUp : kExpired;
      if (!is_there) record_fault(args.context, own.wait, target, seen, elapsed, state);
      return;
    }
    if (elapsed > kEagerNs) pause(32);
  }
  fence_proxy_async();
}

// The kernel that only raises. It lets the next kernel start at once, which waits for this one's
// end.
HP_DEVICE void raise_behind(const RaiseArgs& args) {
  await_kernel_before();
  let_next_kernel_begin();
  raise_signals(args);
}

// Releases what any lane acquired with every signal raised. Tells the host if the rank was
// poisoned, by a peer too. The next kernel may start once all waits are over.
HP_DEVICE void turn(const TurnArgs& args) {
  await_kernel_before();
  if (args.await.count > 0) await_signals(args.await);
  let_next_kernel_begin();
  if (threadIdx.x == 0 && load_relaxed_system(args.raise.poison) != 0) {
    tell_host(args.await.context);
  }
  if (args.counted_epoch != nullptr && threadIdx.x == 0) {
    store_relaxed_system(args.counted_epoch, load_relaxed_system(args.counted_epoch) + 1);
  }
  __syncwarp();
  raise_signals(args.raise);
}

// Tests: writes to unmapped memory, as a kernel with a wrong address would.
HP_DEVICE void stray(const StrayArgs& args) {
  if (threadIdx.x == 0) *reinterpret_cast<volatile std::uint32_t*>(args.address) = 1;
}

// Pauses for up to `most_ns`: usually very short, sometimes long.
HP_DEVICE void linger(const LingerArgs& args) {
  if (threadIdx.x != 0) return;
  std::uint32_t bits = load_relaxed_system(args.epoch) * 0x9e3779b9U ^ args.seed * 0x85ebca6bU;
  bits = (bits ^ (bits >> 15)) * 0x2c1b3c6dU;
  bits ^= bits >> 12;
  const std::uint64_t most = args.most_ns >> (bits >> 24) % 8;
  const std::uint64_t rest = (bits & 0xffff) * most >> 16;
  const std::uint64_t start = global_timer();
  while (global_timer() - start < rest) pause(64);
}

}  // namespace harpe::device
