#include "schedule/primitives/reorder.h"

#include <algorithm>

#include "schedule/moves.h"

namespace harpe {
namespace {

// For each loop, the item indices of it and of the moves directly inside it; group 0 is the nest's
// top.
std::vector<std::vector<std::size_t>> group_by_loop(const NestForm& nest) {
  std::vector<std::vector<std::size_t>> groups(1);
  for (std::size_t i = 0; i < nest.items.size(); ++i) {
    if (std::holds_alternative<For>(nest.items[i])) groups.emplace_back();
    groups.back().push_back(i);
  }
  return groups;
}

Checked<Ok> check_skews(const std::vector<const For*>& loops) {
  for (std::size_t i = 0; i < loops.size(); ++i) {
    for (std::size_t inner = i + 1; inner < loops.size(); ++inner) {
      if (contains(loops[i]->skew, loops[inner]->digit)) {
        return make_diag(DiagCode::S252,
                         {{"outer", loops[i]->digit}, {"inner", loops[inner]->digit}});
      }
    }
  }
  return Ok{};
}

Checked<Ok> check_sequence(const ScheduleState& state, std::size_t nest,
                           const std::vector<std::string>& digits) {
  std::vector<DigitInfo> seen;
  for (const std::string& name : digits) {
    HP_TRY(const DigitInfo digit, require_digit(state, name));
    if (!is_sequential(state, nest, digit.axis)) continue;
    for (const DigitInfo& outer : seen) {
      if (outer.split == digit.split && outer.position > digit.position) {
        return make_diag(DiagCode::S253,
                         {{"inner", digit.name}, {"outer", outer.name}, {"axis", digit.axis}});
      }
    }
    seen.push_back(digit);
  }
  return Ok{};
}

}  // namespace

Checked<ReorderFacts> check(const ScheduleState& state, const Reorder& step) {
  HP_TRY(const std::size_t nest, require_nest(state, step.nest));
  const NestForm& form = state.form.nests[nest];
  const std::vector<std::vector<std::size_t>> groups = group_by_loop(form);
  std::vector<std::string> now;
  std::vector<const For*> loops;
  for (std::size_t g = 1; g < groups.size(); ++g) {
    now.push_back(std::get<For>(form.items[groups[g][0]]).digit);
  }
  if (!std::ranges::is_permutation(now, step.digits)) {
    return make_diag(
        DiagCode::S251,
        {{"nest", step.nest}, {"given", quote_list(step.digits)}, {"loops", quote_list(now)}});
  }
  if (now == step.digits) {
    return make_diag(DiagCode::S008, {{"what", "the loop order of nest `" + step.nest + "`"},
                                      {"value", quote_list(now)}});
  }
  ReorderFacts facts{nest, groups[0]};
  for (const std::string& digit : step.digits) {
    const auto group = static_cast<std::size_t>(std::ranges::find(now, digit) - now.begin()) + 1;
    loops.push_back(&std::get<For>(form.items[groups[group][0]]));
    facts.order.insert(facts.order.end(), groups[group].begin(), groups[group].end());
  }
  HP_REQUIRE_OK(check_skews(loops));
  HP_REQUIRE_OK(check_sequence(state, nest, step.digits));
  const NestForm changed = apply(state, facts).form.nests[nest];
  if (const Move* move = find_pinned_move(changed)) {
    return make_diag(DiagCode::S254, {{"move", describe_move(*move)}, {"digit", *move->chunk}});
  }
  return facts;
}

ScheduleState apply(ScheduleState state, const ReorderFacts& facts) {
  std::vector<NestItem>& items = state.form.nests[facts.nest].items;
  std::vector<NestItem> rearranged;
  for (const std::size_t i : facts.order) rearranged.push_back(items[i]);
  items = std::move(rearranged);
  return state;
}

}  // namespace harpe
