#include "schedule/primitives/tile.h"

#include <algorithm>

namespace harpe {
namespace {

std::vector<std::string> digit_names(const Split& split) {
  std::vector<std::string> names;
  for (const Digit& digit : split.digits) names.push_back(digit.name);
  return names;
}

// The product of the factors times `others`; refuses a product above the bound.
Checked<std::int64_t> count_blocks(const Tile& step, std::string_view axis, std::int64_t others) {
  std::int64_t blocks = others;
  for (const std::int64_t factor : step.factors) {
    if (factor < 1) return make_diag(DiagCode::S103, {{"name", step.axis}, {"factor", factor}});
    if (factor > kMaxAxisBlocks || blocks * factor > kMaxAxisBlocks) {
      return make_diag(DiagCode::S104, {{"axis", axis}, {"most", kMaxAxisBlocks}});
    }
    blocks *= factor;
  }
  return blocks;
}

// One digit per factor and, if there is one more name, a remainder of extent `rest` (none: `_`).
std::vector<Digit> make_digits(const Tile& step, std::optional<std::int64_t> rest) {
  std::vector<Digit> digits;
  for (std::size_t i = 0; i < step.digits.size(); ++i) {
    const bool explicit_extent = i < step.factors.size();
    digits.push_back({step.digits[i], explicit_extent ? std::optional(step.factors[i]) : rest});
  }
  return digits;
}

Checked<Ok> check_counts(const Tile& step) {
  const std::size_t factors = step.factors.size();
  const std::size_t names = step.digits.size();
  if (names > 0 && (names == factors || names == factors + 1)) return Ok{};
  return make_diag(DiagCode::S105, {{"name", step.axis}, {"factors", factors}, {"given", names}});
}

Checked<TileFacts> check_digit(const ScheduleState& state, const Tile& step,
                               const DigitInfo& digit) {
  if (const std::string use = find_use_of_digit(state.form, digit.name); !use.empty()) {
    return make_diag(DiagCode::S106, {{"digit", digit.name}, {"use", use}});
  }
  std::int64_t others = 1;
  for (const Digit& other : state.form.splits[digit.split].digits) {
    if (other.name != digit.name) others *= other.extent.value_or(1);
  }
  HP_TRY(const std::int64_t blocks, count_blocks(step, digit.axis, others));
  const std::int64_t product = blocks / others;
  const bool rest = step.digits.size() > step.factors.size();
  const bool exact =
      !digit.extent || (rest ? *digit.extent % product == 0 : *digit.extent == product);
  if (!exact) {
    return make_diag(DiagCode::S107,
                     {{"digit", digit.name}, {"extent", *digit.extent}, {"product", product}});
  }
  std::optional<std::int64_t> remainder;
  if (digit.extent) remainder = *digit.extent / product;
  HP_REQUIRE_OK(require_fresh_names(state, step.digits, digit.name));
  return TileFacts{digit.split, digit.position, Split{digit.axis, make_digits(step, remainder)}};
}

}  // namespace

Checked<TileFacts> check(const ScheduleState& state, const Tile& step) {
  HP_REQUIRE_OK(check_counts(step));
  if (const auto digit = require_digit(state, step.axis); digit.ok()) {
    return check_digit(state, step, *digit);
  }
  const auto axis = require_axis(state, step.axis);
  if (!axis.ok()) return make_diag(DiagCode::S101, {{"name", step.axis}});
  if (const Split* split = find_split(state.form, step.axis)) {
    return make_diag(DiagCode::S102,
                     {{"axis", step.axis}, {"digits", quote_list(digit_names(*split))}});
  }
  HP_REQUIRE_OK(count_blocks(step, step.axis, 1));
  HP_REQUIRE_OK(require_fresh_names(state, step.digits));
  return TileFacts{state.form.splits.size(), 0, Split{step.axis, make_digits(step, std::nullopt)}};
}

ScheduleState apply(ScheduleState state, const TileFacts& facts) {
  std::vector<Split>& splits = state.form.splits;
  if (facts.split == splits.size()) {
    splits.push_back(facts.parts);
    return state;
  }
  std::vector<Digit>& digits = splits[facts.split].digits;
  const auto at = digits.erase(digits.begin() + static_cast<std::ptrdiff_t>(facts.position));
  digits.insert(at, facts.parts.digits.begin(), facts.parts.digits.end());
  return state;
}

}  // namespace harpe
