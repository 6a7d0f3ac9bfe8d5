#pragma once

#include "plan/plan.h"

namespace harpe::test {

// The same plan with what its copy engines send to other ranks sent by proxy, under that fence.
[[nodiscard]] Plan by_proxy(Plan plan, Fence fence);

// All-gather + GEMM on two ranks: chunks are pushed, one kernel a rank waits for each.
[[nodiscard]] Plan push_plan();

constexpr Fence kAllFences[] = {Fence::PerPut,  Fence::PerDestination, Fence::NicOrdered,
                                Fence::Batched, Fence::OneQuiet,       Fence::Immediate};

}  // namespace harpe::test
