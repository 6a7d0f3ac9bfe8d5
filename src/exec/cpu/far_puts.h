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

// A put to a rank on another host.
struct FarPut {
  int process = 0;  // the process of that rank
  Fence fence = Fence::PerPut;
  transport::Follows follows = transport::Follows::Nothing;  // what may follow its signals
  std::vector<actions::Assign> moves = {};
  std::vector<std::byte*> converted = {};  // per move: buffer for rounded data, or null

  // A run of bytes, as offsets in this process's and the other's windows.
  struct Run {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t bytes = 0;
  };
};

// Per task: its far put, if it is one of this process. Requires: check_reach.
[[nodiscard]] std::vector<std::optional<FarPut>> prepare_far_puts(
    const actions::Setting& setting, const processes::Partition& partition, const Windows& windows);
// Bytes per rank, beside its arena, in which far puts round their data.
[[nodiscard]] std::int64_t bounce_bytes(const Plan& plan, const processes::Partition& partition);

// The runs that a put moves in this execution: rows that no token chose are not sent.
void collect_runs(const FarPut& put, const Windows& windows, std::vector<FarPut::Run>& runs);

// Other hosts may be reached by puts only, with one policy per queue. Errors: X016, X017.
[[nodiscard]] Checked<Ok> check_reach(const Plan& plan, const processes::Partition& partition);

}  // namespace harpe::cpu
