#include "schedule/primitives/patch.h"

#include <algorithm>

#include "schedule/kernels.h"
#include "schedule/primitives/budget.h"

namespace harpe {
namespace {

std::vector<std::string> kernels_of(std::string_view leaf) {
  std::vector<std::string> names;
  for (const LeafKernel& kernel : all_leaf_kernels()) {
    if (leaf.empty() || kernel.leaf == leaf) names.emplace_back(kernel.name);
  }
  return names;
}

Checked<Ok> check_kernel(const ScheduleState& state, std::size_t nest, const std::string& name) {
  const LeafKernel* kernel = find_leaf_kernel(name);
  if (kernel == nullptr) {
    return make_diag(DiagCode::S502,
                     {{"kernel", name}, {"hint", suggestion(name, kernels_of(""))}});
  }
  for (const Stmt& stmt : nest_of(state, nest).stmts) {
    if (stmt.leaf == kernel->leaf) continue;
    return make_diag(DiagCode::S503, {{"kernel", name},
                                      {"kernel_leaf", kernel->leaf},
                                      {"leaf", stmt.leaf},
                                      {"kernels", quote_list(kernels_of(stmt.leaf))}});
  }
  const NestForm& form = state.form.nests[nest];
  if (form.leaf.chunk && !kernel->chunk) {
    return make_diag(DiagCode::S504, {{"kernel", name}, {"digit", *form.leaf.chunk}});
  }
  for (const NestItem& item : form.items) {
    const auto* move = std::get_if<Move>(&item);
    if (move == nullptr || move->how != How::Inline) continue;
    const bool stage = move->kind == MoveKind::Stage;
    if (stage ? kernel->remote_operands : kernel->remote_targets) continue;
    return make_diag(
        DiagCode::S505,
        {{"kernel", name}, {"buffer", move->buffer}, {"used", stage ? "read" : "written"}});
  }
  return Ok{};
}

}  // namespace

Checked<PatchFacts> check(const ScheduleState& state, const Patch& step) {
  HP_TRY(const std::size_t nest, require_nest(state, step.nest));
  if (!step.kernel && !step.sm) return make_diag(DiagCode::S501);
  if (step.kernel) HP_REQUIRE_OK(check_kernel(state, nest, step.kernel->text));
  if (step.sm) HP_REQUIRE_OK(check_sm_count(*step.sm));
  PatchFacts facts{nest, std::nullopt, step.sm};
  if (step.kernel) facts.kernel = step.kernel->text;
  const LeafChoice& now = state.form.nests[nest].leaf;
  const bool changes =
      (facts.kernel && now.kernel != facts.kernel) || (facts.sm && now.sm != facts.sm);
  if (!changes) {
    const std::string value =
        facts.kernel ? "\"" + *facts.kernel + "\"" : std::to_string(*facts.sm);
    return make_diag(DiagCode::S008,
                     {{"what", "the leaf of nest `" + step.nest + "`"}, {"value", value}});
  }
  return facts;
}

ScheduleState apply(ScheduleState state, const PatchFacts& facts) {
  LeafChoice& leaf = state.form.nests[facts.nest].leaf;
  if (facts.kernel) leaf.kernel = facts.kernel;
  if (facts.sm) leaf.sm = facts.sm;
  return state;
}

}  // namespace harpe
