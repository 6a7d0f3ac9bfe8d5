#pragma once

#include "exec/cuda/device/types.h"

namespace harpe::device {

// FaultRecord::state: the wait took longer than its limit, or the host told the rank to give up.
inline constexpr std::uint32_t kExpired = 1;
inline constexpr std::uint32_t kGivenUp = 2;

// The first wait that failed, in pinned host memory. The host reads the rest only where `state` is
// not 0: it is stored last. Which waiter was first the poison word decides, since atomics on the
// host's memory are not to be had everywhere.
struct FaultRecord {
  std::uint32_t state;
  std::uint32_t name;      // which arrival: FlagWait::name
  std::uint32_t expected;  // what the flag had to reach
  std::uint32_t seen;      // what it was at last
  std::uint32_t block;     // of the kernel's grid
  std::uint32_t task;      // WaitContext::task
  std::uint64_t elapsed_ns;
  std::uint32_t is_stopped;  // apart from the rest: the rank was seen poisoned between executions
};

// When a signal of a rank's page was seen in an execution that is traced, by the GPU's clock;
// kNever where it was not.
struct Sighting {
  std::uint64_t seen_ns;     // at first, by any block
  std::uint64_t awaited_ns;  // from here on a block had nothing to do but wait for it
};
inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

// What a block of a kernel that waits inside notes in an execution that is traced, by the GPU's
// clock; all 0 before it begins.
inline constexpr int kMostStands = 64;
struct BlockNotes {
  // A stretch in which the block had nothing left to work on but what it waited for.
  struct Stand {
    std::uint64_t since_ns;
    std::uint64_t until_ns;
  };
  std::uint64_t begin_ns;
  std::uint64_t idle_ns;      // since when, where it stands still now
  std::uint64_t end_ns;       // its last stores were done
  std::uint32_t copies;       // 1: it copies; 0: it multiplies
  std::uint32_t stand_count;  // of the first ones; more are not noted
  Stand stands[kMostStands];
};

// How a kernel waits and what it does when a wait expires (commir.md D19).
struct WaitContext {
  const std::uint32_t* epoch;  // monotone, in device memory; null: every epoch is 1
  std::uint32_t ahead;         // 1: this kernel begins the epoch behind it (Bounds)
  // In device memory, aligned to 8 bytes; 1 once a wait failed: waiters leave. In the word behind
  // it the host tells them to give up, each first saying what it waits for.
  std::uint32_t* poison;
  FaultRecord* fault;      // pinned host memory
  std::uint64_t limit_ns;  // of one wait
  std::uint32_t task;      // what a fault calls this kernel
  Sighting* sightings;     // by FlagWait::name, in device memory; null: none are kept
  BlockNotes* notes;       // by block of the grid, in device memory; null: none are made
};

// A flag that grows by `arrivals` each epoch: ready in epoch e once it is at least e * arrivals, as
// a difference of 32 bits, so that it may wrap.
struct FlagWait {
  const std::uint32_t* flag;  // null: there from the start
  std::uint32_t arrivals;
  std::uint32_t name;
};

}  // namespace harpe::device
