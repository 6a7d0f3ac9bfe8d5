#pragma once

#include <optional>
#include <vector>

#include "exec/actions/action.h"
#include "exec/actions/view.h"
#include "exec/cpu/windows.h"
#include "exec/processes/partition.h"
#include "plan/plan.h"
#include "transport/descriptor.h"

namespace harpe::cpu {

// A transfer to a rank on another host.
struct FarPut {
  int process = 0;  // that has the rank
  Fence fence = Fence::PerPut;
  transport::Follows follows = transport::Follows::Nothing;  // what its signals may wait for
  std::vector<actions::Assign> moves = {};
  std::vector<std::byte*> converted = {};  // per move: where its data is rounded first, or null

  // A run of bytes: from this process's windows to the other's.
  struct Run {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t bytes = 0;
  };
};

// Of each task that is one of this process's far puts; none for the others. Requires: check_reach.
[[nodiscard]] std::vector<std::optional<FarPut>> prepare_far_puts(
    const actions::Setting& setting, const processes::Partition& partition, const Windows& windows);
// What those need beside a rank's arena, on any rank.
[[nodiscard]] std::int64_t bounce_bytes(const Plan& plan, const processes::Partition& partition);

// What a put moves now: rows that nobody chose stay.
void collect_runs(const FarPut& put, const Windows& windows, std::vector<FarPut::Run>& runs);

// Other hosts are reached by puts alone, and a queue's by one policy. Errors: X016, X017.
[[nodiscard]] Checked<Ok> check_reach(const Plan& plan, const processes::Partition& partition);

}  // namespace harpe::cpu
