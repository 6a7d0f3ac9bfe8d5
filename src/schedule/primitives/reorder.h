#pragma once

#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// reorder(N, [d2, d1]):  for d1 { m1; for d2 { m2; s } }  ->  for d2 { m2; for d1 { m1; s } }
// Requires: a nest (S011); a permutation of its loops (S251), not the present one (S008); no loop
//           skewed by a loop that would become inner (S252); digits of one seq axis in their order
//           (S253); no move chunked by a digit whose loop would be around it (S254).
// Keeps:    the set of points. Moves stay directly inside their loop.
struct Reorder {
  static constexpr std::string_view kName = "reorder";
  std::string nest;
  std::vector<std::string> digits;  // outermost first
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Reorder::nest),
                      positional_list("digits", &Reorder::digits)};
  }
  friend bool operator==(const Reorder&, const Reorder&) = default;
};

struct ReorderFacts {
  std::size_t nest = 0;
  std::vector<std::size_t> order;  // indices of the items, rearranged
};

[[nodiscard]] Checked<ReorderFacts> check(const ScheduleState& state, const Reorder& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const ReorderFacts& facts);

}  // namespace harpe
