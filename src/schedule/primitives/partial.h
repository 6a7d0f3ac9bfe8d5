#pragma once

#include <string>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// partial(X, m, a):  place X[…]  ->  place X[…] partial m@a: the ranks along a hold partial states
// Requires: a buffer (S012) that is an output or a temporary (S311) written under monoid m (S312);
//           mesh axes (S014-S016), none of which X's home uses (S313).
// Keeps:    the value of X: its partial states combined by m.
struct Partial {
  static constexpr std::string_view kName = "partial";
  std::string buffer;
  Monoid monoid = Monoid::Sum;
  MeshRef axes;
  static constexpr auto fields() {
    return std::tuple{positional("buffer", &Partial::buffer),
                      positional("monoid", &Partial::monoid), positional("axes", &Partial::axes)};
  }
  friend bool operator==(const Partial&, const Partial&) = default;
};

struct PartialFacts {
  std::string buffer;
  PartialHome home;
};

[[nodiscard]] Checked<PartialFacts> check(const ScheduleState& state, const Partial& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const PartialFacts& facts);

}  // namespace harpe
