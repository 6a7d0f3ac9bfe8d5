#pragma once

#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "search/candidate.h"

namespace harpe {

// Estimates a candidate's time and memory from its shape, without making its plan. It walks the
// loops for one rank, since under translations of the mesh all ranks do the same at the same time.
// Each queue runs its tasks in order, as soon as their dependencies are met. Costs are the
// simulator's; contention between queues is ignored. Under a mask the walk is done for the ranks
// that see most and least, and the slower one counts. Takes microseconds per candidate, whatever
// the mesh.
struct Outline {
  Picoseconds time;
  std::int64_t memory_bytes = 0;
};

// A lower bound for all plans of these candidates: what one rank computes, launches included, and
// what must arrive there at the fastest rate of each level. It does not depend on how groups move.
[[nodiscard]] Picoseconds bound_of(const Problem& problem, const Machine& machine,
                                   const Candidate& skeleton);

[[nodiscard]] Outline outline(const Problem& problem, const Machine& machine,
                              const Candidate& candidate);

}  // namespace harpe
