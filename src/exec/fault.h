#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "support/ids.h"

namespace harpe {

// A failure at run time (ARCHITECTURE.md, Errors). It names the rank that waited, the signal, and
// the rank that should have raised it.
enum class FaultKind : std::uint8_t {
  WaitTimedOut,
  WaitGivenUp,  // before its limit, because another rank had failed
  PeerFaulted,
  WorkerLost,
  OutOfMemory,
  DeviceFailed,   // `signal` is the call and its error
  PeerLost,       // another process has exited or hangs
  NetworkFailed,  // `signal` is the error of the transport
};

struct Fault {
  FaultKind kind = FaultKind::WaitTimedOut;
  RankId rank;
  TaskId task;            // the task that waited or was lost
  std::string task_text;  // "compute fwd.0 iter [3, 2]"
  std::string signal;     // "flag 5 of rank 3"
  TaskId producer;        // the task that should have raised the signal
  RankId producer_rank;
  std::string producer_text;
  std::int64_t expected = 0;
  std::int64_t observed = 0;
  std::chrono::milliseconds elapsed{0};
};

using FaultReport = std::vector<Fault>;  // all ranks, the root cause first

// One line per rank: "rank 3 waited 2.0 s on flag 5 for 1, saw 0: …; its producer is task 17 of
// rank 2, …".
[[nodiscard]] std::string render(const FaultReport& report);

}  // namespace harpe
