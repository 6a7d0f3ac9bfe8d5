#include "driver/library_leaves.h"

#include <algorithm>
#include <set>
#include <utility>

#include "schedule/kernels.h"

namespace harpe {
namespace {

const LeafKernel* kernel_of_library(std::string_view leaf) {
  const auto all = all_leaf_kernels();
  const auto found = std::ranges::find_if(
      all, [&](const LeafKernel& kernel) { return kernel.by_library && kernel.leaf == leaf; });
  return found == all.end() ? nullptr : &*found;
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

bool has_operands_of_16_bits(const Program& program, const Stmt& stmt) {
  return std::ranges::all_of(stmt.operands, [&](const Access& operand) {
    const DType dtype = find_buffer(program, operand.buffer)->dtype;
    return dtype == DType::BF16 || dtype == DType::F16;
  });
}

// Several tasks of the nest leave what they make in one place.
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
    const LeafKernel* const kernel = kernel_of_library(stmt.leaf);
    const bool fits = kernel != nullptr && !nest.leaf.kernel && !nest.leaf.chunk &&
                      !is_fused(made.form, nest.nest) &&
                      std::ranges::none_of(nest.items, is_inline) &&
                      has_operands_of_16_bits(plan.program, stmt);
    if (!fits || (stmt.leaf == "attn_fwd" && carries_on(plan, nest.nest))) continue;
    nest.leaf.kernel = kernel->name;
    made.kernels.emplace_back(kernel->name);
  }
  if (made.kernels.empty()) return std::nullopt;
  return made;
}

}  // namespace harpe
