#pragma once

#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// refine(mesh, a, [n1, n2]) -> a1, a2:  mesh axis a  ->  refine a = a1:n1 * a2:n2   (major first)
// Requires: the schedule's mesh (S121); an axis of it (S014) that is not refined yet (S122) and
//           used nowhere (S123); two or more factors, each >= 1, whose product is its size (S124);
//           one name per factor (S125), fresh (S021).
// Keeps:    every rank's number.
struct RefineAxis {
  static constexpr std::string_view kName = "refine";
  std::string mesh;
  std::string axis;
  std::vector<std::int64_t> factors;
  std::vector<std::string> parts;
  static constexpr auto fields() {
    return std::tuple{positional("mesh", &RefineAxis::mesh), positional("axis", &RefineAxis::axis),
                      positional("factors", &RefineAxis::factors),
                      outputs("parts", &RefineAxis::parts)};
  }
  friend bool operator==(const RefineAxis&, const RefineAxis&) = default;
};

struct RefineAxisFacts {
  Refine line;
};

[[nodiscard]] Checked<RefineAxisFacts> check(const ScheduleState& state, const RefineAxis& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const RefineAxisFacts& facts);

}  // namespace harpe
