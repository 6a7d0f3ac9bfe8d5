#include "schedule/primitives/fuse.h"

#include <algorithm>

#include "schedule/primitives/budget.h"

namespace harpe {
namespace {

const Fuse* find_fuse(const NormalForm& form, std::string_view name) {
  const auto found = std::ranges::find(form.fuses, name, &Fuse::name);
  return found == form.fuses.end() ? nullptr : &*found;
}

// Indices in the program of the nests in a member, with earlier fusions expanded.
std::vector<std::size_t> nests_in(const ScheduleState& state, std::string_view member) {
  std::vector<std::size_t> nests;
  if (const Fuse* fuse = find_fuse(state.form, member)) {
    for (const std::string& inner : fuse->nests) {
      for (const std::size_t nest : nests_in(state, inner)) nests.push_back(nest);
    }
    return nests;
  }
  if (const auto nest = require_nest(state, member); nest.ok()) nests.push_back(*nest);
  return nests;
}

Checked<Ok> check_member(const ScheduleState& state, const std::string& member) {
  if (nests_in(state, member).empty()) {
    std::vector<std::string> known;
    for (const NestForm& nest : state.form.nests) known.push_back(nest.nest);
    for (const Fuse& fuse : state.form.fuses) known.push_back(fuse.name);
    return make_diag(DiagCode::S522, {{"name", member}, {"hint", suggestion(member, known)}});
  }
  for (const Fuse& fuse : state.form.fuses) {
    if (contains(fuse.nests, member)) {
      return make_diag(DiagCode::S524, {{"member", member}, {"fuse", fuse.name}});
    }
  }
  return Ok{};
}

}  // namespace

Checked<FuseNestsFacts> check(const ScheduleState& state, const FuseNests& step) {
  if (find_fuse(state.form, step.name) != nullptr || require_nest(state, step.name).ok()) {
    return make_diag(DiagCode::S521, {{"name", step.name}});
  }
  if (step.nests.empty()) return make_diag(DiagCode::S523, {{"name", step.name}});
  std::vector<std::size_t> order;
  for (const std::string& member : step.nests) {
    HP_REQUIRE_OK(check_member(state, member));
    for (const std::size_t nest : nests_in(state, member)) order.push_back(nest);
  }
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i] == order[i - 1] + 1) continue;
    return make_diag(DiagCode::S525, {{"first", state.form.nests[order[i - 1]].nest},
                                      {"second", state.form.nests[order[i]].nest}});
  }
  if (step.sm) HP_REQUIRE_OK(check_sm_count(*step.sm));
  if (step.warps && (*step.warps < 1 || *step.warps > kMaxWarps)) {
    return make_diag(DiagCode::S526, {{"warps", *step.warps}, {"most", kMaxWarps}});
  }
  return FuseNestsFacts{Fuse{step.name, step.nests, step.persistent, step.sm, step.warps}};
}

ScheduleState apply(ScheduleState state, const FuseNestsFacts& facts) {
  state.form.fuses.push_back(facts.line);
  return state;
}

}  // namespace harpe
