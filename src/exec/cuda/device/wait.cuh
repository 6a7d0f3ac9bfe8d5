#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/device/notes.cuh"
#include "exec/cuda/device/wait_args.h"

// Bounded waits without traps (commir.md D19). A producer whose wait expires records the fault,
// sets the poison word and continues *without waiting*: it still fills and completes every barrier,
// with whatever the addresses contain, so that no other role of its block hangs. Threads that store
// results read `Waiter::poisoned` through shared memory and then store and publish nothing more.
namespace harpe::device {

HP_DEVICE std::uint32_t current_epoch(const WaitContext& context) {
  return context.epoch == nullptr ? 1 : load_relaxed_system(context.epoch) + context.ahead;
}

HP_DEVICE bool reached(std::uint32_t seen, std::uint32_t target) {
  return static_cast<std::int32_t>(seen - target) >= 0;
}

// The first waiter to fail claims the record; its last store, of `state`, releases the rest to the
// host.
HP_DEVICE void record_fault(const WaitContext& context, const FlagWait& wait, std::uint32_t target,
                            std::uint32_t seen, std::uint64_t elapsed_ns, std::uint32_t state) {
  if (compare_exchange_system(context.poison, 0, 1) != 0) return;
  context.fault->name = wait.name;
  context.fault->expected = target;
  context.fault->seen = seen;
  context.fault->block = blockIdx.x;
  context.fault->task = context.task;
  context.fault->elapsed_ns = elapsed_ns;
  fence_system();
  store_release_system(&context.fault->state, state);
}

// Tells the host that the rank was found poisoned.
HP_DEVICE void tell_host(const WaitContext& context) {
  store_release_system(&context.fault->is_stopped, 1);
}

// For traces: only if the context keeps sightings.
HP_DEVICE void note_seen(const WaitContext& context, const FlagWait& wait) {
  if (context.sightings == nullptr) return;
  min_relaxed_gpu(&context.sightings[wait.name].seen_ns, global_timer());
}

HP_DEVICE void note_awaited(const WaitContext& context, const FlagWait& wait) {
  if (context.sightings == nullptr) return;
  min_relaxed_gpu(&context.sightings[wait.name].awaited_ns, global_timer());
}

// Polls until `wait` reaches `target`. False if that took longer than the limit, if another waiter
// has failed, or if the host made the rank give up. After true, data released before the flag
// may be read, by generic loads and by the bulk copy engine.
HP_DEVICE bool poll_flag(const WaitContext& context, const FlagWait& wait, std::uint32_t target) {
  constexpr std::uint64_t kEagerNs = 1000;
  const std::uint64_t start = global_timer();
  std::uint32_t seen = load_acquire_system(wait.flag);
  while (!reached(seen, target)) {
    const std::uint64_t elapsed = global_timer() - start;
    if (elapsed > kEagerNs) pause(32);
    // Both loads are in flight at once.
    const WordPair poison = load_relaxed_system_pair(context.poison);
    seen = load_acquire_system(wait.flag);
    if (poison.first != 0) {
      tell_host(context);
      return false;
    }
    if (poison.second != 0 || elapsed > context.limit_ns) {
      const std::uint32_t state = poison.second != 0 ? kGivenUp : kExpired;
      record_fault(context, wait, target, seen, elapsed, state);
      return false;
    }
  }
  fence_proxy_async();
  return true;
}

// One thread's waits. A register remembers which of the first 64 arrivals it has seen, so that
// repeated waits for them are free; and whether a wait has failed, after which it waits no more.
class Waiter {
 public:
  HP_DEVICE explicit Waiter(const WaitContext& context) : context_(context) {}

  [[nodiscard]] HP_DEVICE bool poisoned() const { return poisoned_; }

  // Whether `wait`, number `index` of this kernel, needs no more polling.
  [[nodiscard]] HP_DEVICE bool known(const FlagWait& wait, int index) const {
    return wait.flag == nullptr || poisoned_ || (index < 64 && ((seen_ >> index) & 1) != 0);
  }

  // True if the arrival is there, and remembers it; does not wait.
  HP_DEVICE bool look(const FlagWait& wait, int index) {
    if (known(wait, index)) return true;
    if (!reached(load_acquire_system(wait.flag), target_of(wait))) return false;
    fence_proxy_async();
    remember(wait, index);
    return true;
  }

  // `is_used`: whether the block has used all data that this thread has loaded.
  template <class Used>
  HP_DEVICE void wait(const FlagWait& wait, int index, const Used& is_used) {
    if (look(wait, index)) return;
    note_awaited(context_, wait);
    note_idle(context_, is_used, [&] { return look(wait, index); });
    if (!known(wait, index)) poll(wait, index);
    note_stand(context_);
  }

  // The same for a thread that polls ahead of the threads that need the arrival.
  HP_DEVICE void watch(const FlagWait& wait, int index) {
    if (!look(wait, index)) poll(wait, index);
  }

 private:
  HP_DEVICE void poll(const FlagWait& wait, int index) {
    if (poll_flag(context_, wait, target_of(wait))) {
      remember(wait, index);
    } else {
      poisoned_ = true;
    }
  }

  HP_DEVICE std::uint32_t target_of(const FlagWait& wait) {
    if (epoch_ == 0) epoch_ = current_epoch(context_);
    return epoch_ * wait.arrivals;
  }

  HP_DEVICE void remember(const FlagWait& wait, int index) {
    note_seen(context_, wait);
    if (index < 64) seen_ |= std::uint64_t{1} << index;
  }

  const WaitContext& context_;
  std::uint32_t epoch_ = 0;  // not read yet: a thread without waits need not read it
  std::uint64_t seen_ = 0;
  bool poisoned_ = false;
};

// Requires: this thread has committed its copies out of shared memory to the counter's GPU, and
// they have *completed*. Makes them visible to a thread that acquires the counter at system scope.
HP_DEVICE void publish(std::uint32_t* counter, std::uint32_t arrivals = 1) {
  fence_proxy_async();
  fence_system();
  add_relaxed_system(counter, arrivals);
}

}  // namespace harpe::device
