#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "plan/plan.h"
#include "sim/taxes.h"

namespace harpe {

// What a stretch of a measured critical path is spent on.
enum class PathPart : std::uint8_t {
  Launch,    // between tasks of a rank: nothing that is to be waited for is missing
  Signal,    // between tasks of two ranks, and until the last member of a collective has come
  Local,     // tasks that pass intermediates on: packing, copies within a rank, folds
  Compute,   // leaves
  Transfer,  // copies between ranks and collectives
  Kernel,    // a kernel that waits inside, whose blocks noted what they did
};
struct PathStretch {
  TaskId task;  // whose work it is, or that begins behind it
  PathPart part = PathPart::Launch;
  std::chrono::nanoseconds begin{0};
  std::chrono::nanoseconds end{0};
  // Of a Kernel: for how long its blocks stood still, in the mean; and for how long of it something
  // was on its way that it waits for or sends.
  std::chrono::nanoseconds stood{0};
  std::chrono::nanoseconds moved{0};
  friend bool operator==(const PathStretch&, const PathStretch&) = default;
};

// What the end of an execution had to wait for: from the task that ended last back to the one that
// let it begin, and so on to an Entry. In the order of time, without gaps. It goes through kernels
// that `kernels` are of from end to begin; within another that waits inside it goes to the producer
// of a signal only where the kernel stood still for it. Requires: an event of every task, by task.
[[nodiscard]] std::vector<PathStretch> measured_path(const Plan& plan,
                                                     std::span<const TraceEvent> events,
                                                     std::span<const KernelEvent> kernels = {});

// A measured execution's taxes (docs/taxes.md), which add up to `total` exactly, and none is below
// 0. The roofline and what bounds it are the prediction's; its skew is nobody's.
[[nodiscard]] Taxes measured_taxes(std::span<const PathStretch> path,
                                   std::chrono::nanoseconds total, const Taxes& predicted);

}  // namespace harpe
