#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// balance(A, zigzag, [d, h]):     A  ->  layout A zigzag(d, h): block d if h = 0, else 2P-1-d
// balance(A, stripe, [d]):        A  ->  layout A stripe(d): d least significant
// balance(A, table, [2, 0, 1]):   A  ->  layout A table(2, 0, 1): block i is logical block p(i)
// balance(A, none):               layout A …  ->  A
// Requires: an axis (S017); two digits for zigzag, one for stripe, none for none (S131); digits of
//           A with explicit extents (S013, S018, S132), all different (S133), |h| = 2 (S134); for
//           table a permutation of the axis' blocks (S135); a layout that differs from the present
//           one (S008).
// Keeps:    the set of positions. Their order is part of the contract with the caller: every buffer
//           with axis A gets this layout.
struct Balance {
  static constexpr std::string_view kName = "balance";
  std::string axis;
  BalanceKind kind = BalanceKind::None;
  std::optional<LayoutArgs> args;
  static constexpr auto fields() {
    return std::tuple{positional("axis", &Balance::axis), positional("kind", &Balance::kind),
                      positional("args", &Balance::args)};
  }
  friend bool operator==(const Balance&, const Balance&) = default;
};

struct BalanceFacts {
  std::string axis;
  std::optional<Call> map;  // none: mixed radix
};

[[nodiscard]] Checked<BalanceFacts> check(const ScheduleState& state, const Balance& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const BalanceFacts& facts);

// Sets or replaces the layout line of an axis, or removes it if `map` is none.
void set_layout(NormalForm& form, const std::string& axis, const std::optional<Call>& map);
// S008 if the axis already has this layout.
[[nodiscard]] Checked<Ok> require_other_layout(const NormalForm& form, const std::string& axis,
                                               const std::optional<Call>& map);

}  // namespace harpe
