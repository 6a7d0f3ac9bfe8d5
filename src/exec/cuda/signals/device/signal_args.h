#pragma once

#include "exec/cuda/device/wait_args.h"

namespace harpe::device {

// Maximum number of signals that one launch raises or awaits: one lane of a warp each.
inline constexpr int kMostSignals = 32;

// Value of `poison` if a peer failed; the rank's own fault sets it to 1.
inline constexpr std::uint32_t kPoisonedByPeer = 2;

// The target of a raise in the waiting rank's page: a flag, which is set to the raiser's epoch, or
// a counter, which grows by `added`.
struct RaiseTarget {
  std::uint32_t* word;
  std::uint32_t* peer_poison;  // of the waiting rank
  std::uint32_t added;         // 0: a flag
  std::uint32_t no_gap = 0;    // no padding, whose content might look like an address
};

struct RaiseArgs {
  const std::uint32_t* epoch;  // of the raising rank, like `poison`
  const std::uint32_t* poison;
  std::int32_t count;
  RaiseTarget targets[kMostSignals];
};

// A wait for what was raised `epochs_back` epochs ago: 0 for this epoch, 1 for the previous one,
// whose signals count as raised in the first epoch.
struct SignalWait {
  FlagWait wait;
  std::uint32_t epochs_back;
  std::uint32_t no_gap = 0;
};

// What one epoch adds to Bounds::ended.
inline constexpr std::uint64_t kEpochOfEnded = std::uint64_t{1} << 32;

// Maximum number of signals that a kernel that bounds an execution awaits, and raises at each end.
inline constexpr int kMostBounds = 8;

// What a kernel that bounds an execution of its rank does in place of Entry and Exit. It raises the
// signals of the Entry, and waits for other ranks before it stores. Behind its last store it waits
// for what the Exit awaits, ends the epoch and raises the signals of the Exit.
// `ended` has the epoch in its upper half. Its lower half counts, modulo 2^32, the threads that
// still have to end: the first block adds 2^32 - `arrivals` when it begins, and each of `arrivals`
// threads adds 1 when it ends. So the epoch grows when the last thread ends, and no thread waits to
// learn whether it is the last.
struct Bounds {
  std::uint64_t* ended;  // of the rank; null: other kernels bound the execution
  std::uint32_t arrivals;
  std::uint32_t task;       // id of the initial waits in a fault
  std::uint32_t exit_task;  // id of the final waits
  std::int32_t begin_count;
  std::int32_t wait_count;
  std::int32_t exit_count;
  std::int32_t end_count;
  std::uint32_t no_gap = 0;
  RaiseTarget begins[kMostBounds];
  SignalWait waits[kMostBounds];
  SignalWait exits[kMostBounds];
  RaiseTarget ends[kMostBounds];
};

// Tests: how long a stream pauses depends on these and on the epoch.
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

// Between two executions: waits for some signals, increments the epoch, then raises others.
struct TurnArgs {
  AwaitArgs await;
  std::uint32_t* counted_epoch;  // null: the epoch is not incremented
  RaiseArgs raise;
};

}  // namespace harpe::device
