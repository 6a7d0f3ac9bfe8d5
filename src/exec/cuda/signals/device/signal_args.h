#pragma once

#include "exec/cuda/device/wait_args.h"

namespace harpe::device {

// What one launch raises or awaits at most: one lane of a warp for each.
inline constexpr int kMostSignals = 32;

// `poison` of a rank whose peer failed; its own fault makes it 1.
inline constexpr std::uint32_t kPoisonedByPeer = 2;

// A signal in the waiting rank's page: a flag, which becomes the raiser's epoch, or a counter,
// which grows by `added`.
struct RaiseTarget {
  std::uint32_t* word;
  std::uint32_t* peer_poison;  // of the waiting rank
  std::uint32_t added;         // 0: a flag
  std::uint32_t no_gap = 0;    // else what is left there may look like an address
};

struct RaiseArgs {
  const std::uint32_t* epoch;  // of the raising rank, like `poison`
  const std::uint32_t* poison;
  std::int32_t count;
  RaiseTarget targets[kMostSignals];
};

// Waits for what was raised `epochs_back` epochs ago: 0 this epoch's, 1 the one before, which is
// there from the start in the first.
struct SignalWait {
  FlagWait wait;
  std::uint32_t epochs_back;
  std::uint32_t no_gap = 0;
};

// A kernel that bounds an execution waits for at most so many signals, and raises at most so many
// at each end.
inline constexpr int kMostBounds = 8;

// What a kernel that is all of an execution on its rank, or the first of it, does in place of Entry
// and Exit. It raises the signals of the Entry. It waits for other ranks before it stores. Where it
// is all, it waits behind its last store for what the Exit awaits, ends the epoch and raises the
// signals of the Exit. `done` counts
// the threads that have finished, up to `arrivals`; it is zero before and after.
struct Bounds {
  std::uint32_t* epoch;  // of the rank; null: other kernels stand between executions
  std::uint32_t* done;
  std::uint32_t arrivals;
  std::uint32_t task;       // what a fault calls the waits at the beginning
  std::uint32_t exit_task;  // and those at the end
  std::int32_t begin_count;
  std::int32_t wait_count;
  std::int32_t exit_count;
  std::int32_t end_count;
  std::uint32_t begins_only;  // 1: an Exit of its own ends the epoch
  RaiseTarget begins[kMostBounds];
  SignalWait waits[kMostBounds];
  SignalWait exits[kMostBounds];
  RaiseTarget ends[kMostBounds];
};

// Tests: how long a stream rests depends on these and on the epoch.
struct LingerArgs {
  const std::uint32_t* epoch;
  std::uint32_t seed;
  std::uint32_t most_ns;
};

struct StrayArgs {
  std::uint64_t address;
};

struct AwaitArgs {
  WaitContext context;
  std::int32_t count;
  SignalWait waits[kMostSignals];
};

// Between two executions: waits for some signals, then increments the epoch, then raises others.
struct TurnArgs {
  AwaitArgs await;
  std::uint32_t* counted_epoch;  // null: it stays
  RaiseArgs raise;
};

}  // namespace harpe::device
