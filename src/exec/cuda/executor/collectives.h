#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/collective_use.h"
#include "exec/cuda/executor/communicators.h"
#include "exec/cuda/library/nccl.h"
#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe::cuda {

// Bytes in one piece on both sides, by their offsets in the ranks' arenas.
struct Piece {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t bytes = 0;
};

// What one member of a sum does itself: NCCL only brings what the others give, so that its order
// and its roundings are the plan's.
struct SumSteps {
  std::vector<Task> rounds;  // copies to outboxes of what travels in another type
  Task fold;                 // of inboxes, and of what is its own
};

// A collective that NCCL can do.
struct Traffic {
  library::NcclCall::Kind kind = library::NcclCall::Kind::Exchange;
  std::size_t team = 0;
  // [from][to], in the team's order; nothing where a rank keeps its own part.
  std::vector<std::vector<std::optional<Piece>>> pieces;
  std::vector<SumSteps> sums;  // of each member; empty where data are only moved
};

// What the choice depends on, besides the plan.
struct CollectiveRules {
  CollectiveEngine engine = CollectiveEngine::Auto;
  bool shares_gpus = false;
  bool waits_inside = false;  // kernels of the plan wait inside for others
};

// Which of a plan's collectives NCCL does.
struct CollectiveChoice {
  std::vector<Team> teams;                       // in the order of their first collectives
  std::map<std::int32_t, Traffic> by_nccl;       // by group
  std::map<std::int32_t, std::string> by_pulls;  // by group, why

  // NCCL is not to be had.
  void refuse_all(const std::string& reason);
};

// The same in all processes. Adds to the plan's allocations the boxes that sums go through, which
// those of a rank share in turns. Requires: a verified plan, and its blocks.
[[nodiscard]] CollectiveChoice choose_collectives(Plan& plan, const Blocks& blocks,
                                                  const CollectiveRules& rules);

// One rank's part of a collective. Requires: `rank` is the end of a rank of the team, `member` its
// number there, and `arena` where its allocations begin.
[[nodiscard]] library::NcclCall call_of(const Traffic& traffic, const library::NcclRank* rank,
                                        std::size_t member, DeviceAddress arena);

// By operation, engine and reason; `nccl` is what NCCL is called.
[[nodiscard]] std::vector<CollectiveUse> uses_of(const Plan& plan, const CollectiveChoice& choice,
                                                 const std::string& nccl);

}  // namespace harpe::cuda
