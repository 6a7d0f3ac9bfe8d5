#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "search/candidate.h"

namespace harpe {

// The space of candidates (commir.md 11.1), factored: a skeleton divides axes among parts and
// states how home digits are visited; its variants state how each group moves. Enumeration is
// injective: no two candidates are the same schedule (tested on their canonical texts).

struct SpaceOptions {
  Contract contract = Contract::Standard;
  int cuts = 1;                           // the most parts beyond the mesh's axes
  std::optional<AxisLayout> layout = {};  // as in Constraints
};

// The number of mesh axes of more than one rank.
[[nodiscard]] int divided_axes(const Mesh& mesh);

// Every skeleton, with `way` empty, in a fixed order.
[[nodiscard]] std::vector<Candidate> enumerate_skeletons(const Problem& problem,
                                                         const SpaceOptions& options);

// The candidates of one skeleton; none where a rotation would move nothing.
[[nodiscard]] std::int64_t count_variants(const Problem& problem, const Candidate& skeleton);
void for_each_variant(const Problem& problem, const Candidate& skeleton,
                      const std::function<void(const Candidate&)>& visit);
// The variants with default moves: relays in loops, and elsewhere either library collectives (best
// for large amounts of data) or direct copies (best for small ones).
[[nodiscard]] std::array<Candidate, 2> usual_variants(const Problem& problem,
                                                      const Candidate& skeleton);
// Candidates that differ in the way of one group at one part.
[[nodiscard]] std::vector<Candidate> neighbours_of(const Problem& problem,
                                                   const Candidate& candidate);

// The same schedule with other depths and transports, one change at a time.
[[nodiscard]] std::vector<Candidate> refinements_of(const Problem& problem, const Machine& machine,
                                                    const Candidate& candidate);

}  // namespace harpe
