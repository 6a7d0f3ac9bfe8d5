#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"

namespace harpe::test {

// Runs a plan once on symbolic values and compares the homes with the sequential program. At every
// step it picks a random task that may start or a random put that may arrive. It models what waits
// for what, without clocks or races. A plan without a race gives the same answer for every seed. If
// all seeds give the right answer, a finding of the verifier would be a false alarm. Shares no code
// with verify/. Returns what went wrong, if anything. Requires: ids in range, boxes within extents.
[[nodiscard]] std::optional<std::string> replay(const Plan& plan, std::uint64_t seed);

}  // namespace harpe::test
