#pragma once

#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "search/candidate.h"

namespace harpe {

// How much of a group is where, as shares of the whole: what the outline and the bound count with.

// Of a group at home, on one rank.
[[nodiscard]] double home_share(const Problem& problem, const Candidate& candidate, int group);

// What stage number `index` of a group's chain brings in one go, own part included; `chain` are the
// group's moves in order.
[[nodiscard]] double stage_share(const Problem& problem, const Candidate& candidate,
                                 const std::vector<CandidateLoop>& loops,
                                 const std::vector<CandidateMove>& chain, std::size_t index);

// What a rank holds of a written group when control is under the first `depth` loops, before drain
// number `index` of its chain (in the order they run) and after those before it.
[[nodiscard]] double drain_share(const Problem& problem, const Candidate& candidate,
                                 const std::vector<CandidateLoop>& loops,
                                 const std::vector<CandidateMove>& chain, std::size_t index);

// Elements along an axis of one leaf call.
[[nodiscard]] double call_extent(const Problem& problem, const Candidate& candidate,
                                 const std::vector<CandidateLoop>& loops, int axis);

// The loops around stage number `index` of a chain on which it depends which block it brings, a bit
// each. A home digit turns nothing before the stage over its own part.
[[nodiscard]] std::uint32_t loops_that_choose(const Problem& problem, const Candidate& candidate,
                                              const std::vector<CandidateLoop>& loops,
                                              const std::vector<CandidateMove>& chain,
                                              std::size_t index);

// Seconds in which what a rank needs and does not hold can have arrived, however it moves: for the
// ranks that differ in the last parts alone, what all of them need less what they hold, evenly
// shared, at the fastest rate of the levels beyond them.
[[nodiscard]] double arrival_bound(const Problem& problem, const Machine& machine,
                                   const Candidate& candidate);

[[nodiscard]] bool is_indexed(const SearchGroup& group, int axis);

}  // namespace harpe
