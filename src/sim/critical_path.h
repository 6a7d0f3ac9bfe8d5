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

// Back from what ends last through what made each activity ready: covers [0, total] without gaps.
[[nodiscard]] std::vector<Segment> critical_path(const Plan& plan, const Machine& machine,
                                                 const BuiltWorkload& built, const EngineRun& run);

// Of the worst rank: its SMs wait for data, or copy between ranks themselves.
[[nodiscard]] Picoseconds exposed_communication(const Plan& plan, const BuiltWorkload& built,
                                                const EngineRun& run);

}  // namespace harpe
