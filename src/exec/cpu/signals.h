#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/cpu/launch_steps.h"
#include "exec/processes/partition.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"

namespace harpe::cpu {

// A flag that this process sets in another process once a signal has been raised.
struct Outgoing {
  int process = 0;
  std::int32_t flag = 0;  // in its page
};

// A step that raises a signal, and the task that it is named for.
struct Producer {
  TaskId task;
  StepPlace step;
  friend bool operator==(const Producer&, const Producer&) = default;
};

// A signal or an event of a launch plan (exec/cpu/launch_steps.h) as one process has it. It only
// grows; steps wait until it has at least a value, as on a device (commir.md 7.3, D18). Signals
// that the same steps raise, in the pages of several ranks, are one. Where producers are in several
// processes there is one for each: a process counts its own producers, and the last of them raises
// a flag in each process that waits.
struct ProcessSignal {
  std::optional<launch::SignalKind> kind;  // none: an event
  std::int32_t index = 0;                  // as of StepSignal
  std::vector<Producer> producers = {};    // of one process
  std::int64_t arrivals = 1;  // per execution; 1: a flag, which holds the execution's number
  std::vector<std::int32_t> waiters = {};  // queues whose heads may wait for it
  std::int32_t flag = -1;  // in this process's page, where another process raises it
  std::vector<Outgoing> outgoing = {};
  bool is_behind_put = false;  // raised by the network, behind the data of its producer

  // The execution that an execution waits for: a credit is given at the end of the one before.
  [[nodiscard]] std::int64_t awaited(std::int64_t epoch) const {
    return kind == launch::SignalKind::Credit ? epoch - 1 : epoch;
  }
};

// What a step waits for and what it raises.
struct StepSignals {
  std::vector<std::int32_t> waits;
  std::vector<SignalRaise> raises;
};

// Of one process.
struct ProcessSignals {
  std::vector<ProcessSignal> signals;
  std::vector<std::vector<StepSignals>> queues;  // as LaunchSteps::queues; others' steps have none
  std::int32_t most_flags = 0;                   // in the largest page of all processes
};

// The same numbers in every process that asks; of the first flags in each page so many are kept for
// others' progress. Requires: steps of the plan.
[[nodiscard]] ProcessSignals map_signals(const Plan& plan, const LaunchSteps& steps,
                                         const processes::Partition& partition);

// A transfer that leaves this host: handed to the network.
[[nodiscard]] bool is_far_put(const Plan& plan, const processes::Partition& partition, TaskId task);

}  // namespace harpe::cpu
