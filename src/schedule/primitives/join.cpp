#include "schedule/primitives/join.h"

namespace harpe {
namespace {

Checked<Ok> require_unbound(const ScheduleState& state, const std::string& digit) {
  const std::string use = find_use_of_digit(state.form, digit);
  if (use.empty()) return Ok{};
  return make_diag(DiagCode::S112, {{"digit", digit}, {"use", use}});
}

Checked<JoinFacts> check_axis(const ScheduleState& state, const Join& step) {
  HP_REQUIRE_OK(require_axis(state, step.first));
  if (!step.digits.empty()) {
    return make_diag(DiagCode::S113, {{"expected", 0}, {"given", step.digits.size()}});
  }
  const std::vector<Split>& splits = state.form.splits;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    if (splits[i].axis != step.first) continue;
    for (const Digit& digit : splits[i].digits) HP_REQUIRE_OK(require_unbound(state, digit.name));
    return JoinFacts{i, 0, std::nullopt};
  }
  return make_diag(DiagCode::S114, {{"axis", step.first}});
}

}  // namespace

Checked<JoinFacts> check(const ScheduleState& state, const Join& step) {
  if (!step.second) return check_axis(state, step);
  if (step.digits.size() != 1) {
    return make_diag(DiagCode::S113, {{"expected", 1}, {"given", step.digits.size()}});
  }
  HP_TRY(const DigitInfo first, require_digit(state, step.first));
  HP_TRY(const DigitInfo second, require_digit(state, *step.second));
  if (first.split != second.split || first.position + 1 != second.position) {
    return make_diag(DiagCode::S111, {{"first", first.name}, {"second", second.name}});
  }
  HP_REQUIRE_OK(require_unbound(state, first.name));
  HP_REQUIRE_OK(require_unbound(state, second.name));
  const std::string& name = step.digits[0];
  if (name != first.name && name != second.name) {
    HP_REQUIRE_OK(require_fresh_names(state, step.digits));
  }
  std::optional<std::int64_t> extent;
  if (second.extent) extent = first.extent.value_or(1) * *second.extent;
  return JoinFacts{first.split, first.position, Digit{name, extent}};
}

ScheduleState apply(ScheduleState state, const JoinFacts& facts) {
  std::vector<Split>& splits = state.form.splits;
  if (!facts.merged) {
    splits.erase(splits.begin() + static_cast<std::ptrdiff_t>(facts.split));
    return state;
  }
  std::vector<Digit>& digits = splits[facts.split].digits;
  digits.erase(digits.begin() + static_cast<std::ptrdiff_t>(facts.position));
  digits[facts.position] = *facts.merged;
  return state;
}

}  // namespace harpe
