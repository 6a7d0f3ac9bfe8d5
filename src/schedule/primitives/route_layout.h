#pragma once

#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// route_layout(R, slab, [c, t]):  route R : (E, C) <- (T, Kc)  ->  layout C slab(c, t)
// Slots of the ragged axis C are grouped by the source of their tokens: digit c of C equals digit t
// of T. Every pair of source block and expert block is then one message with static bounds
// (commir.md 8).
// Requires: a route of the program (S141); pairs of a slot digit and a source digit (S142),
//           explicit digits (S013, S018) of C and of T (S143) with equal extents (S144); not
//           compact, which counts at run time (S145); a layout that differs from the present one
//           (S008).
// Keeps:    which token goes to which expert.
struct RouteLayout {
  static constexpr std::string_view kName = "route_layout";
  std::string route;
  RouteLayoutKind kind = RouteLayoutKind::Slab;
  std::vector<std::string> digits;
  static constexpr auto fields() {
    return std::tuple{positional("route", &RouteLayout::route),
                      positional("kind", &RouteLayout::kind),
                      positional_list("digits", &RouteLayout::digits)};
  }
  friend bool operator==(const RouteLayout&, const RouteLayout&) = default;
};

struct RouteLayoutFacts {
  std::string axis;  // the ragged one
  Call map;
};

[[nodiscard]] Checked<RouteLayoutFacts> check(const ScheduleState& state, const RouteLayout& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const RouteLayoutFacts& facts);

}  // namespace harpe
