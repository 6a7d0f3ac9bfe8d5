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

using Team = std::vector<RankId>;  // ascending: who has a communicator together

// Bytes in one piece on both sides, by their offsets in the ranks' arenas.
struct Piece {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t bytes = 0;
};

using launch::SumSteps;

// A collective that NCCL can do.
struct Traffic {
  library::NcclCall::Kind kind = library::NcclCall::Kind::Exchange;
  std::size_t team = 0;
  // [from][to], in the team's order; nothing where a rank keeps its own part.
  std::vector<std::vector<std::optional<Piece>>> pieces;
  std::map<RankId, SumSteps> sums;  // empty where data are only moved
};

// A plan's collectives: what NCCL does, and why pulls do the others.
struct CollectiveChoice {
  std::vector<Team> teams;                       // in the order of their first collectives
  std::map<std::int32_t, Traffic> by_nccl;       // by group
  std::map<std::int32_t, std::string> by_pulls;  // by group, why
};

// Requires: `exchanges` are the plan's, with their boxes behind its allocations.
[[nodiscard]] CollectiveChoice bind_exchanges(const Plan& plan, const Blocks& blocks,
                                              const launch::Exchanges& exchanges);

// One rank's part of a collective. Requires: `rank` is the end of a rank of the team, `member` its
// number there, and `arena` where its allocations begin.
[[nodiscard]] library::NcclCall call_of(const Traffic& traffic, const library::NcclRank* rank,
                                        std::size_t member, DeviceAddress arena);

// By operation, engine and reason; `nccl` is what NCCL is called.
[[nodiscard]] std::vector<CollectiveUse> uses_of(const Plan& plan, const CollectiveChoice& choice,
                                                 const std::string& nccl);

}  // namespace harpe::cuda
