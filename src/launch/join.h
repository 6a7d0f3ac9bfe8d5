#pragma once

#include <optional>
#include <span>
#include <vector>

#include "launch/draft.h"

namespace harpe::launch {

// A kernel of one task on its own, and the signal that the task waits for.
struct AwaitedKernel {
  TaskId task;
  const Kernel* kernel = nullptr;
  std::optional<SignalId> when = {};
};

// Why kernels cannot be one.
struct Refused {
  Reason reason;
  std::int64_t a = 0;  // the reason's numbers
  std::int64_t b = 0;
};

// One kernel with the panels and arrivals of all, in their order, which waits inside for each
// one's signal. A GEMM's panel takes further K chunks where the next kernel adds to what it
// stores; attention's panels and arrivals are those that are different. Panels under a mask by
// positions ascend in them.
[[nodiscard]] Result<Kernel, Refused> join_kernels(const Draft& draft,
                                                   std::span<const AwaitedKernel> kernels);

// A kernel of the same name with these panels, which meet arrivals of the other: those that are
// met, in the order of first use. Requires: nothing is fused yet.
[[nodiscard]] Kernel with_panels(const Kernel& kernel, std::vector<Panel> panels);

// Whether a kernel right before the task may store at once what it copies: a copy by `sm` that
// waits for beginnings alone, and for which one waits at most. Why not is noted.
[[nodiscard]] bool can_store_for(Draft& draft, TaskId copy);

// The step, whose kernel stores what the copies would and raises their signals, does them.
void take_over(Draft& draft, std::size_t step, std::span<const TaskId> copies);

}  // namespace harpe::launch
