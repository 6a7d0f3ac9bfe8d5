#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/cpu/launch_steps.h"
#include "exec/processes/partition.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::cpu {

// A flag that this process sets in another process when a signal has been raised.
struct Outgoing {
  int process = 0;
  std::int32_t flag = 0;  // in its page
};

// A step that raises a signal, and the task that reports name for it.
struct Producer {
  TaskId task;
  StepPlace step;
  friend bool operator==(const Producer&, const Producer&) = default;
};

// A signal or an event of a launch plan (exec/cpu/launch_steps.h) as one process holds it. It only
// grows; steps wait until it is at least a value, as on a GPU (commir.md 7.3, D18). Signals of
// several ranks' pages that the same steps raise are one. If producers are in several processes,
// each process has its own signal: it counts its own producers, and the last of them raises a flag
// in each process that waits.
struct ProcessSignal {
  std::optional<launch::SignalKind> kind;  // none: an event
  std::int32_t index = 0;                  // as of StepSignal
  std::vector<Producer> producers = {};    // of one process
  std::int64_t arrivals = 1;  // per execution; 1: a flag, which holds the execution's number
  std::vector<std::int32_t> waiters = {};  // queues whose heads may wait for it
  std::int32_t flag = -1;                  // in this process's page, if another process raises it
  std::vector<Outgoing> outgoing = {};
  bool is_behind_put = false;  // raised by the network, behind its producer's data

  // The execution that execution `epoch` waits for: a credit is granted by the previous one.
  [[nodiscard]] std::int64_t awaited(std::int64_t epoch) const {
    return kind == launch::SignalKind::Credit ? epoch - 1 : epoch;
  }
};

// The signals that a step waits for and raises.
struct StepSignals {
  std::vector<std::int32_t> waits;
  std::vector<SignalRaise> raises;
};

// Of one process.
struct ProcessSignals {
  std::vector<ProcessSignal> signals;
  std::vector<std::vector<StepSignals>> queues;  // as LaunchSteps::queues; others' steps: empty
  std::int32_t most_flags = 0;                   // in the largest page of all processes
};

// Every process computes the same numbers. The first flags of each page, one per process, are kept
// for the other processes' progress. Requires: steps of the plan.
[[nodiscard]] ProcessSignals map_signals(const Plan& plan, const LaunchSteps& steps,
                                         const processes::Partition& partition);

// A put that leaves this host, through the network.
[[nodiscard]] bool is_far_put(const Plan& plan, const processes::Partition& partition, TaskId task);

}  // namespace harpe::cpu
