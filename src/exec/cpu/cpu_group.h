#pragma once

#include <memory>

#include "exec/group/group.h"

namespace harpe {

// Ranks that are threads or processes of one host, on its processor: each computes its tasks on the
// thread that launches, and they reach each other's memory.
// Collective. Errors: N002, N010, N017 other ranks, or one on another host; X018.
[[nodiscard]] Checked<std::unique_ptr<RankGroup>> join_cpu_group(const GroupRequest& request);

}  // namespace harpe
