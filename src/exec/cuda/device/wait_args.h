#pragma once

#include "exec/cuda/device/types.h"

namespace harpe::device {

// FaultRecord::state: the wait exceeded its limit, or the host made the rank give up.
inline constexpr std::uint32_t kExpired = 1;
inline constexpr std::uint32_t kGivenUp = 2;

// The first wait that failed, in pinned host memory. The host reads the rest only if `state` is not
// 0, which is stored last. The poison word decides which waiter is first, because atomics on host
// memory are not available everywhere.
struct FaultRecord {
  std::uint32_t state;
  std::uint32_t name;      // which signal: FlagWait::name
  std::uint32_t expected;  // the value that the flag had to reach
  std::uint32_t seen;      // its last value
  std::uint32_t block;     // of the kernel's grid
  std::uint32_t task;      // WaitContext::task
  std::uint64_t elapsed_ns;
  std::uint32_t is_stopped;  // separate: a wait, or a kernel between executions, found poison
};

// When a signal of a rank's page was seen in a traced execution, by the GPU's clock; kNever if it
// was not.
struct Sighting {
  std::uint64_t seen_ns;     // first, by any block
  std::uint64_t awaited_ns;  // since when a block had nothing to do but wait for it
};
inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

// Notes of one block of a kernel that waits inside, in a traced execution, by the GPU's clock; all
// 0 before it begins.
inline constexpr int kMostStands = 64;
struct BlockNotes {
  // A period in which the block had no work left but what it waited for.
  struct Stand {
    std::uint64_t since_ns;
    std::uint64_t until_ns;
  };
  std::uint64_t begin_ns;
  std::uint64_t idle_ns;      // since when it stands still, if it does
  std::uint64_t end_ns;       // when its last stores were done
  std::uint32_t copies;       // 1: it copies; 0: it computes
  std::uint32_t stand_count;  // of the first kMostStands; later ones are dropped
  Stand stands[kMostStands];
};

// How a kernel waits, and where it reports an expired wait (commir.md D19).
struct WaitContext {
  const std::uint32_t* epoch;  // monotone, in device memory; null: every epoch is 1
  std::uint32_t ahead;         // 1: this kernel begins the epoch that follows it (Bounds)
  // In device memory, 8-byte aligned; 1 once a wait has failed: waiters leave. The host sets the
  // next word to make waiters give up; the first to do so records what it waits for.
  std::uint32_t* poison;
  FaultRecord* fault;      // pinned host memory
  std::uint64_t limit_ns;  // of one wait
  std::uint32_t task;      // the kernel's id in a fault
  Sighting* sightings;     // by FlagWait::name, in device memory; null: none
  BlockNotes* notes;       // by block of the grid, in device memory; null: none
};

// A flag that grows by `arrivals` in each epoch. It is ready in epoch e when it is at least e *
// arrivals, compared as a 32-bit difference, so that it may wrap.
struct FlagWait {
  const std::uint32_t* flag;  // null: ready from the start
  std::uint32_t arrivals;
  std::uint32_t name;
};

}  // namespace harpe::device
