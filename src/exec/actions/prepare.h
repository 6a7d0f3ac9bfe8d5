#pragma once

#include <string>
#include <vector>

#include "exec/actions/action.h"
#include "exec/actions/view.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::actions {

// Resolves a task to actions. Entry and Exit have none.
// Errors: X001-X009, X011-X014 for work that no kernel here computes.
[[nodiscard]] Checked<TaskWork> prepare_task(const Setting& setting, const Task& task);

// By kind of task. Copy, Pack, Unpack, AllGather, AllToAll:
[[nodiscard]] TaskWork prepare_moves(const Setting& setting, const Task& task);
[[nodiscard]] Checked<TaskWork> prepare_compute(const Setting& setting, const Task& task);
// A statement over rectangles of elements, with operands and results at any place.
struct StatementWork {
  struct Operand {
    std::string buffer;
    std::vector<Patch> patches;
  };
  std::string nest;
  int stmt = 0;
  std::vector<std::vector<Interval>> boxes;  // along the nest's `over` axes, in that order
  std::vector<Operand> reads;                // including what masks read
  std::vector<Operand> writes;
};
// Errors: as prepare_compute. Requires: the leaf follows no route.
[[nodiscard]] Checked<TaskWork> prepare_statement(const Setting& setting,
                                                  const StatementWork& work);
// Copies or adds one place of a buffer to another, rounded to the target's type. Requires: `from`
// has all elements of `to`.
[[nodiscard]] TaskWork prepare_transfer(const Setting& setting, const std::string& buffer,
                                        std::vector<Patch> to, std::vector<Patch> from, bool adds);
// Compute, of a leaf that follows a route (gather_rows, combine_rows).
// Errors: X003 features are cut, X004 strides of features differ, X012 tokens of a slab that this
// rank lacks, X014 too few slots.
[[nodiscard]] Checked<TaskWork> prepare_routed(const Setting& setting, const Task& task);
[[nodiscard]] TaskWork prepare_init(const Setting& setting, const Task& task);
[[nodiscard]] TaskWork prepare_fill(const Setting& setting, const std::string& buffer,
                                    std::vector<Patch> to, double value);
// Fold, Finalise, ReduceScatter:
[[nodiscard]] Checked<TaskWork> prepare_fold(const Setting& setting, const Task& task);
// Adds a contribution to the statement's results or replaces them, depending on the mode of the
// patches of `to`. One operand of each side per part of a state.
[[nodiscard]] TaskWork prepare_addend(const Setting& setting, const Stmt& stmt,
                                      std::vector<StatementWork::Operand> to,
                                      std::vector<StatementWork::Operand> from);

// The statement that a task works for. Requires: the task names one.
[[nodiscard]] const Stmt& statement_of(const Plan& plan, const Task& task);
[[nodiscard]] const Stmt& statement_of(const Plan& plan, const std::string& nest, int stmt);
// How many targets of a statement form one state: all of them under lse, else one.
[[nodiscard]] std::size_t targets_per_state(const Stmt& stmt);
// The identity of a statement's monoid for target number `target`: -inf in a logsumexp, else 0.
[[nodiscard]] double identity_of(const Stmt& stmt, std::size_t target);

}  // namespace harpe::actions
