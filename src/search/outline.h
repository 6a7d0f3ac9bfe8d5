#pragma once

#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "search/candidate.h"

namespace harpe {

// A candidate's time and memory from its shape alone, without making its plan: the loops are walked
// for one rank, since under translations of the mesh all do the same at the same time, and every
// queue takes its tasks in order as soon as what they wait for is there. Costs are the simulator's;
// contention between queues is not looked at. Under a mask the walk is done for the ranks that see
// most and least, and the slower counts. Microseconds per candidate, whatever the mesh.
struct Outline {
  Picoseconds time;
  std::int64_t memory_bytes = 0;
};

// No plan of these candidates is faster: what one rank computes, launches included, and what must
// arrive there at the fastest rate of each level. The same for all that differ in how groups move.
[[nodiscard]] Picoseconds bound_of(const Problem& problem, const Machine& machine,
                                   const Candidate& skeleton);

[[nodiscard]] Outline outline(const Problem& problem, const Machine& machine,
                              const Candidate& candidate);

}  // namespace harpe
