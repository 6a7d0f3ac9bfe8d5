#pragma once

#include <memory>

#include "exec/group/group.h"

namespace harpe {

// A group of CPU ranks that are threads or processes of one host: each computes its tasks on the
// thread that launches, and they map each other's memory.
// Collective. Errors: N002, N010, N017 another rank failed or is on another host; X018.
[[nodiscard]] Checked<std::unique_ptr<RankGroup>> join_cpu_group(const GroupRequest& request);

}  // namespace harpe
