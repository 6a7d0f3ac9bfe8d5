#pragma once

#include "exec/actions/action.h"
#include "exec/actions/view.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::actions {

// A task's actions. Entry and Exit have none.
// Errors: X001-X009, X011-X014 what no kernel here computes.
[[nodiscard]] Checked<TaskWork> prepare_task(const Setting& setting, const Task& task);

// By kind. Copy, Pack, Unpack, AllGather, AllToAll:
[[nodiscard]] TaskWork prepare_moves(const Setting& setting, const Task& task);
[[nodiscard]] Checked<TaskWork> prepare_compute(const Setting& setting, const Task& task);
// Compute, of a leaf that follows a route (gather_rows, combine_rows).
// Errors: X003 features cut, X004 features apart, X012 tokens of a slab that are not here, X014 too
// few slots.
[[nodiscard]] Checked<TaskWork> prepare_routed(const Setting& setting, const Task& task);
[[nodiscard]] TaskWork prepare_init(const Setting& setting, const Task& task);
// Fold, Finalise, ReduceScatter:
[[nodiscard]] Checked<TaskWork> prepare_fold(const Setting& setting, const Task& task);

// The statement a task works for. Requires: the task names one.
[[nodiscard]] const Stmt& statement_of(const Plan& plan, const Task& task);
// How many targets of a statement are one state: all under lse, else one.
[[nodiscard]] std::size_t targets_per_state(const Stmt& stmt);
// The identity of a statement's monoid in its target number `target`: -inf in a logsumexp, else 0.
[[nodiscard]] double identity_of(const Stmt& stmt, std::size_t target);

}  // namespace harpe::actions
