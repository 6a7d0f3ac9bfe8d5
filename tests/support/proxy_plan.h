#pragma once

#include "plan/plan.h"

namespace harpe::test {

// The same plan, except that copies to other ranks go through the proxy under `fence`, not `ce`.
[[nodiscard]] Plan by_proxy(Plan plan, Fence fence);

// All-gather + GEMM on two ranks: chunks are pushed, and one kernel per rank waits for each chunk.
[[nodiscard]] Plan push_plan();

constexpr Fence kAllFences[] = {Fence::PerPut,  Fence::PerDestination, Fence::NicOrdered,
                                Fence::Batched, Fence::OneQuiet,       Fence::Immediate};

}  // namespace harpe::test
