#pragma once

#include <string>
#include <vector>

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
// A statement over rectangles of elements, on operands and results wherever they lie.
struct StatementWork {
  struct Operand {
    std::string buffer;
    std::vector<Patch> patches;
  };
  std::string nest;
  int stmt = 0;
  std::vector<std::vector<Interval>> boxes;  // along the nest's `over` axes, in that order
  std::vector<Operand> reads;                // what masks read, too
  std::vector<Operand> writes;
};
// Errors: as prepare_compute's. Requires: the leaf follows no route.
[[nodiscard]] Checked<TaskWork> prepare_statement(const Setting& setting,
                                                  const StatementWork& work);
// What one place of a buffer gives another, which it is copied or added to, rounded to its type.
// Requires: `from` has all elements of `to`.
[[nodiscard]] TaskWork prepare_transfer(const Setting& setting, const std::string& buffer,
                                        std::vector<Patch> to, std::vector<Patch> from, bool adds);
// Compute, of a leaf that follows a route (gather_rows, combine_rows).
// Errors: X003 features cut, X004 features apart, X012 tokens of a slab that are not here, X014 too
// few slots.
[[nodiscard]] Checked<TaskWork> prepare_routed(const Setting& setting, const Task& task);
[[nodiscard]] TaskWork prepare_init(const Setting& setting, const Task& task);
[[nodiscard]] TaskWork prepare_fill(const Setting& setting, const std::string& buffer,
                                    std::vector<Patch> to, double value);
// Fold, Finalise, ReduceScatter:
[[nodiscard]] Checked<TaskWork> prepare_fold(const Setting& setting, const Task& task);
// A contribution to results of the statement, one operand of each side per part of a state: added
// to what is there, or put in its place, as the mode of the patches of `to` says.
[[nodiscard]] TaskWork prepare_addend(const Setting& setting, const Stmt& stmt,
                                      std::vector<StatementWork::Operand> to,
                                      std::vector<StatementWork::Operand> from);

// The statement a task works for. Requires: the task names one.
[[nodiscard]] const Stmt& statement_of(const Plan& plan, const Task& task);
[[nodiscard]] const Stmt& statement_of(const Plan& plan, const std::string& nest, int stmt);
// How many targets of a statement are one state: all under lse, else one.
[[nodiscard]] std::size_t targets_per_state(const Stmt& stmt);
// The identity of a statement's monoid in its target number `target`: -inf in a logsumexp, else 0.
[[nodiscard]] double identity_of(const Stmt& stmt, std::size_t target);

}  // namespace harpe::actions
