#pragma once

#include <vector>

#include "plan/plan.h"

namespace harpe {

// Sums that leave a product as they are made: a copy by multiprocessors of nothing but partial
// states that products right before it in its queue have made, sent rounded to another rank. On
// GPUs such a product stores them there itself (docs/gpu.md), so the copy takes no time of its
// queue's. Per task: the products whose states it sends; none of all others.
[[nodiscard]] std::vector<std::vector<TaskId>> find_fused_stores(const Plan& plan);

}  // namespace harpe
