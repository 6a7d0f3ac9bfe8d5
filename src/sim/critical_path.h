#pragma once

#include <string>
#include <vector>

#include "machine/machine.h"
#include "plan/plan.h"
#include "sim/build.h"
#include "sim/engine.h"
#include "sim/simulate.h"

namespace harpe {

// "rank 3 nvlink in", "rank 3 memory"
[[nodiscard]] std::string name_of(const Machine& machine, const Resource& resource);

// From the activity that ends last, back through what made each one ready. Covers [0, total]
// without gaps.
[[nodiscard]] std::vector<Segment> critical_path(const Plan& plan, const Machine& machine,
                                                 const BuiltWorkload& built, const EngineRun& run);

// The time that the worst rank's SMs wait for data, or copy between ranks themselves.
[[nodiscard]] Picoseconds exposed_communication(const Plan& plan, const BuiltWorkload& built,
                                                const EngineRun& run);

}  // namespace harpe
