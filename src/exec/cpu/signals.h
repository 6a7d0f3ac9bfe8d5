#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "exec/processes/partition.h"
#include "plan/plan.h"

namespace harpe::cpu {

// What a signal is for.
enum class ProcessSignalKind : std::uint8_t {
  Sync,     // a flag, stored by the sync's `from`
  Barrier,  // a counter of the barrier's `from` tasks
  Entry,    // a flag: the rank's Entry has run, so its queues may begin the execution
  Arrival,  // a counter: members of a collective whose parts are ready
  Pulled,   // a counter: members of a collective that have taken what they need
};

// When a task that has handed its data to a network raises a signal.
enum class Raise : std::uint8_t {
  Over,    // its data is in place; of any other task: it has run
  Posted,  // at once: the signal is about no put
  Behind,  // by the network, behind the data, as the signal's fence asks
};

// A flag that this process sets in another process once a signal has been raised.
struct Outgoing {
  int process = 0;
  std::int32_t flag = 0;  // in its page
};

// A monotone signal. A flag holds the last execution (epoch) it was raised in; a counter has been
// incremented `members` times per execution. Waiting is `>=`, as on a device (commir.md 7.3, D18).
// Where the producers are in several processes there is a signal for each: a process counts its
// own, and the last raises a flag in each process that waits.
struct ProcessSignal {
  ProcessSignalKind kind = ProcessSignalKind::Sync;
  std::int32_t index = 0;    // of the sync, barrier, rank or group
  std::int64_t members = 0;  // of a counter, in this process; 0: a flag
  std::vector<TaskId> producers = {};
  std::vector<std::int32_t> waiters = {};  // queues whose heads may wait for it
  std::int32_t flag = -1;  // in this process's page, where another process raises it
  std::vector<Outgoing> outgoing = {};
  Raise raise = Raise::Over;
};

// A wait of a task: the signal must have reached epoch * scale.
struct Wait {
  std::int32_t signal = 0;
  std::int64_t scale = 1;
};

// What the tasks of one process wait for, and what they raise.
struct ProcessSignals {
  std::vector<ProcessSignal> signals;
  std::vector<std::vector<Wait>> waits;  // per task: before it runs (a collective: announces)
  std::vector<std::vector<std::int32_t>> raises;  // per task: signals it raises when it is over

  struct Collective {
    std::int32_t arrival = -1;  // raised when the member is there
    std::int32_t pulled = -1;   // raised when it has what it needs
    std::vector<Wait> arrived;  // before it pulls
    std::vector<Wait> left;     // before it leaves
  };
  std::map<TaskId, Collective> collectives;
  std::int32_t flags = 0;       // in this process's page, and
  std::int32_t most_flags = 0;  // in the largest page of all
};

// The same numbers in every process that asks.
// Requires: a verified plan; of its first flags in each page so many are kept for others' progress.
[[nodiscard]] ProcessSignals signals_of(const Plan& plan, const processes::Partition& partition);

// A transfer that leaves this host: handed to the network.
[[nodiscard]] bool is_far_put(const Plan& plan, const processes::Partition& partition, TaskId task);

}  // namespace harpe::cpu
