#pragma once

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// reverse(N.d):  for d = t  ->  for d = n-1-t, and back
// Requires: a loop (S011, S019), not of a seq axis (S241); no relay inside, which only runs
//           forwards (S242).
// Keeps:    each rank's set of points.
struct Reverse {
  static constexpr std::string_view kName = "reverse";
  LoopPath loop;
  static constexpr auto fields() { return std::tuple{positional("loop", &Reverse::loop)}; }
  friend bool operator==(const Reverse&, const Reverse&) = default;
};

struct ReverseFacts {
  std::size_t nest = 0;
  std::size_t item = 0;
};

[[nodiscard]] Checked<ReverseFacts> check(const ScheduleState& state, const Reverse& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const ReverseFacts& facts);

}  // namespace harpe
