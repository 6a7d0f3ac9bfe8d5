#pragma once

#include <vector>

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

// How often a move happens, but steps that only repeat what is there already.
[[nodiscard]] double distinct_steps(const Problem& problem, const Candidate& candidate,
                                    const std::vector<CandidateLoop>& loops,
                                    const CandidateMove& move);

[[nodiscard]] bool is_indexed(const SearchGroup& group, int axis);

}  // namespace harpe
