#include "exec/actions/prepare.h"

#include <limits>

#include "support/check.h"

namespace harpe::actions {

const Stmt& statement_of(const Plan& plan, const std::string& name, int stmt) {
  const Nest* nest = find_nest(plan.program, name);
  HP_CHECK(nest != nullptr, "nest `" + name + "` of a task");
  HP_CHECK(stmt >= 0 && static_cast<std::size_t>(stmt) < nest->stmts.size(),
           "statement of a task in nest `" + name + "`");
  return nest->stmts[static_cast<std::size_t>(stmt)];
}

const Stmt& statement_of(const Plan& plan, const Task& task) {
  return statement_of(plan, task.nest, task.stmt);
}

std::size_t targets_per_state(const Stmt& stmt) {
  return stmt.monoid == Monoid::Lse ? stmt.targets.size() : 1;
}

double identity_of(const Stmt& stmt, std::size_t target) {
  const bool logsumexp = stmt.monoid == Monoid::Lse && target == 1;
  return logsumexp ? -std::numeric_limits<double>::infinity() : 0.0;
}

Checked<TaskWork> prepare_task(const Setting& setting, const Task& task) {
  switch (task.kind) {
    case TaskKind::Entry:
    case TaskKind::Exit:
      return TaskWork{};
    case TaskKind::Init:
      return prepare_init(setting, task);
    case TaskKind::Compute:
      return prepare_compute(setting, task);
    case TaskKind::Copy:
    case TaskKind::Pack:
    case TaskKind::Unpack:
      return prepare_moves(setting, task);
    case TaskKind::Fold:
    case TaskKind::Finalise:
      return prepare_fold(setting, task);
    case TaskKind::Collective:
      if (task.collective == CollectiveOp::ReduceScatter) return prepare_fold(setting, task);
      return prepare_moves(setting, task);
  }
  HP_CHECK(false, "a task kind");
  return TaskWork{};
}

}  // namespace harpe::actions
