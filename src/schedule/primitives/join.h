#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// join(d1, d2) -> d:  split A = … * d1:n1 * d2:n2 * …  ->  split A = … * d:(n1*n2) * …
// join(A):            split A = …                      ->  A        (the inverse of tile)
// Requires: adjacent digits of one axis, in that order (S111), bound nowhere (S112); one result for
//           two digits, none for an axis (S113); a fresh name (S021); an axis that is tiled (S114).
// Keeps:    the axis' elements and their order. A digit joined with the remainder is the remainder.
struct Join {
  static constexpr std::string_view kName = "join";
  std::string first;                  // a digit, or an axis
  std::optional<std::string> second;  // a digit
  std::vector<std::string> digits;
  static constexpr auto fields() {
    return std::tuple{positional("first", &Join::first), positional("second", &Join::second),
                      outputs("digit", &Join::digits)};
  }
  friend bool operator==(const Join&, const Join&) = default;
};

struct JoinFacts {
  std::size_t split = 0;
  std::size_t position = 0;     // of the first of the two digits
  std::optional<Digit> merged;  // none: the whole split is removed
};

[[nodiscard]] Checked<JoinFacts> check(const ScheduleState& state, const Join& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const JoinFacts& facts);

}  // namespace harpe
