#pragma once

#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "search/candidate.h"

namespace harpe {

// Where the data of groups is, as shares of the whole. The outline and the bound use it.

// The share of a group that one rank holds at home.
[[nodiscard]] double home_share(const Problem& problem, const Candidate& candidate, int group);

// The share that stage number `index` of a group's chain brings at a time, including the own part.
// `chain` are the group's moves in order.
[[nodiscard]] double stage_share(const Problem& problem, const Candidate& candidate,
                                 const std::vector<CandidateLoop>& loops,
                                 const std::vector<CandidateMove>& chain, std::size_t index);

// The share of a written group that a rank holds inside the first `depth` loops, before drain
// number `index` of its chain (in execution order) and after the earlier drains.
[[nodiscard]] double drain_share(const Problem& problem, const Candidate& candidate,
                                 const std::vector<CandidateLoop>& loops,
                                 const std::vector<CandidateMove>& chain, std::size_t index);

// The extent of an axis in one call of the leaf.
[[nodiscard]] double call_extent(const Problem& problem, const Candidate& candidate,
                                 const std::vector<CandidateLoop>& loops, int axis);

// The loops around stage number `index` of a chain that determine which block it brings, as a bit
// each. A home digit has no effect before the stage over its own part.
[[nodiscard]] std::uint32_t loops_that_choose(const Problem& problem, const Candidate& candidate,
                                              const std::vector<CandidateLoop>& loops,
                                              const std::vector<CandidateMove>& chain,
                                              std::size_t index);

// A lower bound in seconds for the arrival of everything that a rank needs and does not hold,
// however it moves. For each set of ranks that differ only in the last parts: what all of them need
// minus what they hold, shared evenly, at the fastest rate of the levels beyond them.
[[nodiscard]] double arrival_bound(const Problem& problem, const Machine& machine,
                                   const Candidate& candidate);

[[nodiscard]] bool is_indexed(const SearchGroup& group, int axis);

}  // namespace harpe
