#pragma once

#include <optional>
#include <span>
#include <vector>

#include "launch/draft.h"

namespace harpe::launch {

// The kernel of a single task, and the signal that the task waits for.
struct AwaitedKernel {
  TaskId task;
  const Kernel* kernel = nullptr;
  std::optional<SignalId> when = {};
};

// Why kernels cannot be joined into one.
struct Refused {
  Reason reason;
  std::int64_t a = 0;  // the reason's numbers
  std::int64_t b = 0;
};

// Returns one kernel with the panels and arrivals of all kernels in their order; it waits inside
// for each arrival's signal. A GEMM panel gets a further K chunk from each next kernel that adds to
// what the panel stores. Equal panels and arrivals of attention kernels are merged. Under a causal
// or window mask, panels and the arrivals that they meet ascend by position.
[[nodiscard]] Result<Kernel, Refused> join_kernels(const Draft& draft,
                                                   std::span<const AwaitedKernel> kernels);

// A kernel of the same name with these panels, which meet arrivals of `kernel`. It keeps the
// arrivals that are met, in the order of first use. Requires: the kernel has no fused stores or
// copies.
[[nodiscard]] Kernel with_panels(const Kernel& kernel, std::vector<Panel> panels);

// True if a kernel right before the task may store what the task copies: the task is a copy by `sm`
// that waits for entries alone and raises at most one signal. Records a refusal otherwise.
[[nodiscard]] bool can_store_for(Draft& draft, TaskId copy);

// Moves the copies into the step, whose kernel stores their data and raises their signals.
void take_over(Draft& draft, std::size_t step, std::span<const TaskId> copies);

}  // namespace harpe::launch
