#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "plan/plan.h"
#include "sim/taxes.h"

namespace harpe {

// The kind of a stretch of a measured critical path.
enum class PathPart : std::uint8_t {
  Launch,    // between tasks of a rank, when nothing is left to wait for
  Signal,    // between tasks of two ranks, and until a collective's last member arrives
  Local,     // tasks that pass on intermediates: packing, copies within a rank, folds
  Compute,   // leaves
  Transfer,  // copies between ranks and collectives
  Kernel,    // a kernel that waits inside, with records of its blocks
};
struct PathStretch {
  TaskId task;  // the task that runs, or that begins after the stretch
  PathPart part = PathPart::Launch;
  std::chrono::nanoseconds begin{0};
  std::chrono::nanoseconds end{0};
  // For a Kernel: how long its blocks waited on average, and for how much of its time a transfer
  // that it waits for or sends was in flight.
  std::chrono::nanoseconds stood{0};
  std::chrono::nanoseconds moved{0};
  friend bool operator==(const PathStretch&, const PathStretch&) = default;
};

// The critical path of an execution: from the task that ended last back to the task that let it
// begin, and so on to an Entry. In time order, without gaps. It passes through the kernels of
// `kernels` from end to begin. Through other kernels that wait inside, it follows the producer of a
// signal only if the kernel waited for that signal. Requires: an event of every task, by task.
[[nodiscard]] std::vector<PathStretch> measured_path(const Plan& plan,
                                                     std::span<const TraceEvent> events,
                                                     std::span<const KernelEvent> kernels = {});

// A measured execution's taxes (docs/taxes.md), which add up to `total` exactly; none is below 0.
// The roofline and what bounds it are predicted. The skew is not measured.
[[nodiscard]] Taxes measured_taxes(std::span<const PathStretch> path,
                                   std::chrono::nanoseconds total, const Taxes& predicted);

}  // namespace harpe
