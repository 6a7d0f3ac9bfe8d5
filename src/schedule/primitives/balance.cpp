#include "schedule/primitives/balance.h"

#include <algorithm>

#include "ir/text.h"

namespace harpe {
namespace {

Checked<Ok> check_count(const Balance& step, const LayoutArgs& args, std::size_t expected) {
  if (args.size() == expected) return Ok{};
  return make_diag(DiagCode::S131,
                   {{"kind", print(step.kind)}, {"expected", expected}, {"given", args.size()}});
}

Checked<DigitInfo> require_own_digit(const ScheduleState& state, const std::string& axis,
                                     const Scalar& arg) {
  const auto* name = std::get_if<Name>(&arg);
  HP_TRY(DigitInfo digit, require_explicit_digit(state, name != nullptr ? name->text : print(arg)));
  if (digit.axis != axis) {
    return make_diag(DiagCode::S132,
                     {{"digit", digit.name}, {"owner", digit.axis}, {"axis", axis}});
  }
  return digit;
}

Checked<Ok> check_zigzag(const ScheduleState& state, const Balance& step, const LayoutArgs& args) {
  HP_REQUIRE_OK(check_count(step, args, 2));
  HP_TRY(const DigitInfo first, require_own_digit(state, step.axis, args[0]));
  HP_TRY(const DigitInfo half, require_own_digit(state, step.axis, args[1]));
  if (first.name == half.name) return make_diag(DiagCode::S133, {{"digit", first.name}});
  if (half.extent == 2) return Ok{};
  return make_diag(DiagCode::S134, {{"digit", half.name}, {"extent", half.blocks()}});
}

Checked<Ok> check_stripe(const ScheduleState& state, const Balance& step, const LayoutArgs& args) {
  HP_REQUIRE_OK(check_count(step, args, 1));
  HP_REQUIRE_OK(require_own_digit(state, step.axis, args[0]));
  return Ok{};
}

Checked<Ok> check_table(const ScheduleState& state, const Balance& step, const LayoutArgs& args) {
  std::int64_t blocks = 1;
  if (const Split* split = find_split(state.form, step.axis)) {
    for (const Digit& digit : split->digits) blocks *= digit.extent.value_or(1);
  }
  std::vector<bool> seen(args.size(), false);
  for (const Scalar& arg : args) {
    const auto* number = std::get_if<std::int64_t>(&arg);
    const bool inside =
        number != nullptr && *number >= 0 && *number < static_cast<std::int64_t>(args.size());
    if (inside) seen[static_cast<std::size_t>(*number)] = true;
  }
  const bool permutation = std::ranges::find(seen, false) == seen.end();
  if (permutation && static_cast<std::int64_t>(args.size()) == blocks) return Ok{};
  return make_diag(DiagCode::S135, {{"axis", step.axis}, {"blocks", blocks}});
}

Checked<Ok> check_args(const ScheduleState& state, const Balance& step, const LayoutArgs& args) {
  switch (step.kind) {
    case BalanceKind::Zigzag:
      return check_zigzag(state, step, args);
    case BalanceKind::Stripe:
      return check_stripe(state, step, args);
    case BalanceKind::Table:
      return check_table(state, step, args);
    case BalanceKind::None:
      return check_count(step, args, 0);
  }
  HP_CHECK(false, "unknown balance kind");
}

}  // namespace

void set_layout(NormalForm& form, const std::string& axis, const std::optional<Call>& map) {
  const auto now = std::ranges::find(form.layouts, axis, &Layout::axis);
  if (!map) {
    form.layouts.erase(now);
  } else if (now == form.layouts.end()) {
    form.layouts.push_back(Layout{axis, *map});
  } else {
    now->map = *map;
  }
}

Checked<Ok> require_other_layout(const NormalForm& form, const std::string& axis,
                                 const std::optional<Call>& map) {
  const auto now = std::ranges::find(form.layouts, axis, &Layout::axis);
  const bool same = now == form.layouts.end() ? !map : map == now->map;
  if (!same) return Ok{};
  return make_diag(DiagCode::S008, {{"what", "the layout of `" + axis + "`"},
                                    {"value", map ? print(*map) : "mixed radix"}});
}

Checked<BalanceFacts> check(const ScheduleState& state, const Balance& step) {
  HP_REQUIRE_OK(require_axis(state, step.axis));
  const LayoutArgs args = step.args.value_or(LayoutArgs{});
  HP_REQUIRE_OK(check_args(state, step, args));
  BalanceFacts facts{step.axis, std::nullopt};
  if (step.kind != BalanceKind::None) facts.map = Call{std::string(print(step.kind)), args};
  HP_REQUIRE_OK(require_other_layout(state.form, step.axis, facts.map));
  return facts;
}

ScheduleState apply(ScheduleState state, const BalanceFacts& facts) {
  set_layout(state.form, facts.axis, facts.map);
  return state;
}

}  // namespace harpe
