#pragma once

#include <string>
#include <vector>

#include "machine/machine.h"
#include "plan/plan.h"

namespace harpe {

// The plan of a named schedule.
[[nodiscard]] Plan plan_of(const std::string& target, const std::vector<std::string>& parameters,
                           const std::string& mesh, const std::string& schedule);

// Round figures, so that times can be said in one line: 16 processors of 4 SMs, 1 TB/s of memory,
// 100 GB/s per port, launches 2 us, copies 4 us, events 1 us, signals 1 us. A product's rate has no
// tiles and no ramp. `teraflops` of all SMs.
[[nodiscard]] Machine plain_machine(double teraflops = 100);
// Pairs of such processors on rails: 10 GB/s, signals 5 us, posts 1 us, fences 20 us.
[[nodiscard]] Machine paired_machine(double teraflops = 100);

}  // namespace harpe
