#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"

namespace harpe::test {

// Runs a plan once on symbolic values, taking at every turn any task that may start or any put that
// may arrive, and compares
// what the homes hold with the sequential program. Knows what waits for what, and nothing of clocks
// or races: a plan without a race gives the same answer for every seed, and a plan for which all
// seeds give the right answer is one that a finding of the verifier would wrong. Shares no code
// with verify/. Returns what went wrong, if anything. Requires: ids in range, boxes within extents.
[[nodiscard]] std::optional<std::string> replay(const Plan& plan, std::uint64_t seed);

}  // namespace harpe::test
