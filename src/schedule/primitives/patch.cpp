#include "schedule/primitives/patch.h"

#include <algorithm>

#include "offers/offers.h"
#include "schedule/primitives/budget.h"

namespace harpe {
namespace {

// The kernel name that leaves the choice to the executor.
constexpr std::string_view kAny = "any";

Checked<Ok> check_kernel(const ScheduleState& state, std::size_t nest, const std::string& name) {
  const KernelOffer* const kernel = find_offer(name);
  if (kernel == nullptr) {
    const std::vector<std::string> offered = offered_kernels();
    return make_diag(
        DiagCode::S502,
        {{"kernel", name}, {"hint", suggestion(name, offered)}, {"kernels", quote_list(offered)}});
  }
  for (const Stmt& stmt : nest_of(state, nest).stmts) {
    if (is_leaf(stmt.leaf, kernel->leaf)) continue;
    return make_diag(DiagCode::S503, {{"kernel", name},
                                      {"kernel_leaf", print(kernel->leaf)},
                                      {"leaf", stmt.leaf},
                                      {"kernels", quote_list(offered_kernels(stmt.leaf))}});
  }
  const NestForm& form = state.form.nests[nest];
  if (form.leaf.chunk && !kernel->chunks) {
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
  const bool names = step.kernel && step.kernel->text != kAny;
  if (names) HP_REQUIRE_OK(check_kernel(state, nest, step.kernel->text));
  if (step.sm) HP_REQUIRE_OK(check_sm_count(*step.sm));
  PatchFacts facts{.nest = nest, .leaf = state.form.nests[nest].leaf};
  if (step.kernel) facts.leaf.kernel.reset();
  if (names) facts.leaf.kernel = step.kernel->text;
  if (step.sm) facts.leaf.sm = step.sm;
  if (facts.leaf == state.form.nests[nest].leaf) {
    const std::string value =
        step.kernel ? "\"" + step.kernel->text + "\"" : std::to_string(*step.sm);
    return make_diag(DiagCode::S008,
                     {{"what", "the leaf of nest `" + step.nest + "`"}, {"value", value}});
  }
  return facts;
}

ScheduleState apply(ScheduleState state, const PatchFacts& facts) {
  state.form.nests[facts.nest].leaf = facts.leaf;
  return state;
}

}  // namespace harpe
