#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "exec/actions/problems.h"
#include "exec/processes/launch_environment.h"
#include "support/diag.h"
#include "support/ids.h"

namespace harpe {

// How the queues of all ranks run.
enum class QueueRunner : std::uint8_t {
  Pool,     // workers that run the heads of ready queues
  Threads,  // a thread per queue, which waits for its head: for race detectors
  Stepper,  // the caller's thread, one step of a chosen queue at a time
};

struct CpuOptions {
  QueueRunner runner = QueueRunner::Pool;
  int workers = 0;  // of the pool; 0: one per core
  Products products = Products::Libraries;

  // This process is one of several that make an executor of the same plan and has its share of the
  // ranks. Ranks of other hosts are reached through this provider of libfabric.
  std::optional<processes::Launch> launch = std::nullopt;
  std::string provider = "tcp;ofi_rxm";
  std::chrono::milliseconds wait_limit{10'000};  // of the transport; as in RunOptions

  // Called for each process that is refused while this one waits for others.
  std::function<void(const Diag&)> warn = [](const Diag&) {};

  // Tests. Pool and Threads: tasks start after random delays, and the pool serves its queue in
  // random order. Results of a plan must not depend on it.
  std::optional<std::uint64_t> delay_seed = std::nullopt;
  // Stepper: chooses which of `ready` >= 1 queues takes the next step, as an index below `ready`;
  // unset: 0.
  std::function<std::size_t(std::size_t ready)> choose = {};
  // The worker that reaches the task ends without running it.
  std::optional<TaskId> lose_worker_at = std::nullopt;
  // A rank's Exit fills its slots with NaN: what another execution reads of them, or writes there
  // too early, is lost.
  bool clears_slots = false;
  // The task runs, but raises no signal.
  std::optional<TaskId> drop_signal_of = std::nullopt;
};

}  // namespace harpe
