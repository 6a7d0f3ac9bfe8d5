#include "exec/fault.h"

namespace harpe {
namespace {

// "2.0 s", rounded to tenths.
std::string print_seconds(std::chrono::milliseconds time) {
  const std::int64_t tenths = (time.count() + 50) / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string print_task(TaskId task, const std::string& text) {
  return "task " + std::to_string(task.value) + " (" + text + ")";
}

std::string print_wait(const Fault& fault) {
  const bool gave_up = fault.kind == FaultKind::WaitGivenUp;
  const std::string time =
      gave_up ? " gave up after " + std::to_string(fault.elapsed.count()) + " ms of waiting on "
              : " waited " + print_seconds(fault.elapsed) + " on ";
  std::string line = time + fault.signal + " for " + std::to_string(fault.expected) + ", saw " +
                     std::to_string(fault.observed) + ": " +
                     print_task(fault.task, fault.task_text);
  if (!fault.producer.valid()) return line;
  return line + "; its producer is task " + std::to_string(fault.producer.value) + " of rank " +
         std::to_string(fault.producer_rank.value) + " (" + fault.producer_text + ")";
}

std::string render_fault(const Fault& fault) {
  std::string rank = "rank " + std::to_string(fault.rank.value);
  const std::string task = print_task(fault.task, fault.task_text);
  switch (fault.kind) {
    case FaultKind::WaitTimedOut:
    case FaultKind::WaitGivenUp:
      return rank + print_wait(fault);
    case FaultKind::WorkerLost:
      return rank + " lost the worker that had reached " + task;
    case FaultKind::PeerFaulted:
      return rank + " stopped before " + task + ", because a peer faulted";
    case FaultKind::OutOfMemory:
      return rank + " has no memory for " + task;
    case FaultKind::DeviceFailed:
      return rank + " lost its GPU: " + fault.signal;
    case FaultKind::PeerLost:
      return rank + " answers no more: its process ended or hangs";
    case FaultKind::NetworkFailed:
      return rank + " lost the network: " + fault.signal;
  }
  return rank;
}

}  // namespace

std::string render(const FaultReport& report) {
  std::string text;
  for (const Fault& fault : report) text += render_fault(fault) + "\n";
  return text;
}

}  // namespace harpe
