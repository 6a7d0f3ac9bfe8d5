#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// shift(N.d, [a][, c]):  for d = t  ->  for d = (t + coordinate on a + c) mod n
// Requires: a loop (S011, S019); terms that are mesh axes or digits of enclosing loops (S231), none
//           twice (S232); a number of ranks that divides the extent (S233); not a seq axis (S234);
//           c >= 0 (S235); a skew that differs from the present one (S008); no relay inside that
//           depends on the present rotation (S236).
// Keeps:    each rank's set of points; permutes their order. shift(N.d, []) removes the skew.
struct Shift {
  static constexpr std::string_view kName = "shift";
  LoopPath loop;
  std::vector<std::string> terms;
  std::optional<std::int64_t> offset;
  static constexpr auto fields() {
    return std::tuple{positional("loop", &Shift::loop), positional_list("axes", &Shift::terms),
                      positional("offset", &Shift::offset)};
  }
  friend bool operator==(const Shift&, const Shift&) = default;
};

struct ShiftFacts {
  std::size_t nest = 0;
  std::size_t item = 0;
  For loop;
};

[[nodiscard]] Checked<ShiftFacts> check(const ScheduleState& state, const Shift& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const ShiftFacts& facts);

// The relay directly inside loop item `item` that would break if `changed` replaced the loop, as
// text with the reason; "" if none.
[[nodiscard]] std::string find_broken_relay(const ScheduleState& state, std::size_t nest,
                                            std::size_t item, const For& changed);

}  // namespace harpe
