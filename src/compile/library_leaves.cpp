#include "compile/library_leaves.h"

#include "offers/offers.h"

#include <algorithm>
#include <set>
#include <utility>

namespace harpe {
namespace {

// A library kernel that supports the types of all of the statement's operands.
const KernelOffer* library_kernel_for(const Program& program, const Stmt& stmt) {
  for (const KernelOffer& kernel : gpu_offers().kernels) {
    if (!kernel.by_library || !is_leaf(stmt.leaf, kernel.leaf)) continue;
    const bool takes = std::ranges::all_of(stmt.operands, [&](const Access& operand) {
      const DType dtype = find_buffer(program, operand.buffer)->dtype;
      return std::ranges::find(kernel.types, dtype) != kernel.types.end();
    });
    if (takes) return &kernel;
  }
  return nullptr;
}

bool is_inline(const NestItem& item) {
  const auto* const move = std::get_if<Move>(&item);
  return move != nullptr && move->how == How::Inline;
}

bool is_fused(const NormalForm& form, const std::string& nest) {
  return std::ranges::any_of(form.fuses, [&](const Fuse& fuse) {
    return std::ranges::find(fuse.nests, nest) != fuse.nests.end();
  });
}

// True if several tasks of the nest write to the same place.
bool carries_on(const Plan& plan, const std::string& nest) {
  std::set<AllocId> written;
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::Compute || task.nest != nest || task.writes.empty()) continue;
    if (!written.insert(task.writes.front().alloc).second) return true;
  }
  return false;
}

}  // namespace

std::optional<LibraryLeaves> use_library_leaves(const Plan& plan) {
  LibraryLeaves made{.form = plan.form, .kernels = {}};
  for (NestForm& nest : made.form.nests) {
    const auto declared = std::ranges::find(plan.program.nests, nest.nest, &Nest::name);
    if (declared == plan.program.nests.end() || declared->stmts.size() != 1) continue;
    const Stmt& stmt = declared->stmts.front();
    const KernelOffer* const kernel = library_kernel_for(plan.program, stmt);
    const bool fits = kernel != nullptr && !nest.leaf.kernel && !nest.leaf.chunk &&
                      !is_fused(made.form, nest.nest) &&
                      std::ranges::none_of(nest.items, is_inline);
    if (!fits || (kernel->leaf == Leaf::AttentionForward && carries_on(plan, nest.nest))) continue;
    nest.leaf.kernel = kernel->name;
    made.kernels.emplace_back(kernel->name);
  }
  if (made.kernels.empty()) return std::nullopt;
  return made;
}

}  // namespace harpe
