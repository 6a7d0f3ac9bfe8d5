#pragma once

#include "plan/plan.h"

namespace harpe::test {

// The same plan with what its copy engines send to other ranks sent by proxy, under that fence.
[[nodiscard]] Plan by_proxy(Plan plan, Fence fence);

// All-gather + GEMM on two ranks: chunks are pushed, one kernel a rank waits for each.
[[nodiscard]] Plan push_plan();

constexpr Fence kAllFences[] = {Fence::Put,   Fence::Dest,  Fence::Nic,
                                Fence::Batch, Fence::Epoch, Fence::Imm};

}  // namespace harpe::test
