#include "exec/named_kernels.h"

#include <algorithm>
#include <string>

#include "support/check.h"

namespace harpe {
namespace {

std::string names_for(const ExecutorOffers& offers, const std::string& leaf, DType dtype) {
  std::string names;
  for (const KernelOffer& kernel : offers.kernels) {
    if (!is_leaf(leaf, kernel.leaf)) continue;
    if (std::ranges::find(kernel.types, dtype) == kernel.types.end()) continue;
    names += (names.empty() ? "`" : ", `") + std::string(kernel.name) + "`";
  }
  return names.empty() ? "none by name" : names;
}

}  // namespace

Checked<Ok> check_kernels(const Plan& plan, const ExecutorOffers& offers) {
  for (const Task& task : plan.tasks) {
    if (task.leaf_kernel.empty()) continue;
    const Nest* const nest = find_nest(plan.program, task.nest);
    HP_CHECK(nest != nullptr, "a task's nest");
    const Stmt& stmt = nest->stmts[static_cast<std::size_t>(task.stmt)];
    const DType dtype = find_buffer(plan.program, stmt.operands.front().buffer)->dtype;
    const KernelOffer* const kernel = offers.find(task.leaf_kernel);
    const bool runs = kernel != nullptr && is_leaf(stmt.leaf, kernel->leaf) &&
                      std::ranges::find(kernel->types, dtype) != kernel->types.end();
    if (runs) continue;
    return make_diag(DiagCode::X019, {{"nest", task.nest},
                                      {"kernel", task.leaf_kernel},
                                      {"leaf", stmt.leaf},
                                      {"dtype", print(dtype)},
                                      {"executor", offers.executor},
                                      {"kernels", names_for(offers, stmt.leaf, dtype)}});
  }
  return Ok{};
}

}  // namespace harpe
