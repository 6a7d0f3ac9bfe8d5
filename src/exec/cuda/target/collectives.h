#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/collective_use.h"
#include "exec/cuda/library/nccl_call.h"
#include "ir/blocks.h"
#include "launch/exchanges.h"
#include "plan/plan.h"

namespace harpe::cuda {

using Team = std::vector<RankId>;  // ascending; the ranks share a communicator

// A contiguous run of bytes on both sides, by offsets in the ranks' arenas.
struct Piece {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t bytes = 0;
};

using launch::SumSteps;

// A collective that NCCL runs.
struct Traffic {
  library::NcclCall::Kind kind = library::NcclCall::Kind::Exchange;
  std::size_t team = 0;
  // [from][to], in the team's order; none if a rank keeps its own part in place.
  std::vector<std::vector<std::optional<Piece>>> pieces;
  std::map<RankId, SumSteps> sums;  // empty if data only moves
};

// A plan's collectives: which NCCL runs, and why pulls run the others.
struct CollectiveChoice {
  std::vector<Team> teams;                       // in the order of their first collectives
  std::map<std::int32_t, Traffic> by_nccl;       // by group
  std::map<std::int32_t, std::string> by_pulls;  // by group: the reason
};

// Requires: `exchanges` are the plan's, with their boxes behind its allocations.
[[nodiscard]] CollectiveChoice bind_exchanges(const Plan& plan, const Blocks& blocks,
                                              const launch::Exchanges& exchanges);

// One rank's part of a collective. Requires: `rank` is the rank's end of the team's communicator,
// `member` its number in the team, and `arena` the address of its allocations.
[[nodiscard]] library::NcclCall call_of(const Traffic& traffic, const library::NcclRank* rank,
                                        std::size_t member, DeviceAddress arena);

// By operation, engine and reason; `nccl` is NCCL's name.
[[nodiscard]] std::vector<CollectiveUse> uses_of(const Plan& plan, const CollectiveChoice& choice,
                                                 const std::string& nccl);

}  // namespace harpe::cuda
