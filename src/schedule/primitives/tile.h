#pragma once

#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// tile(A, [n1, n2]) -> d1, d2[, r]:  A  ->  split A = d1:n1 * d2:n2 [* r:_]
// tile(d, [n1, n2]) -> d1, d2[, r]:  split A = … * d * …  ->  split A = … * d1:n1 * d2:n2 [* r] * …
// Requires: an axis or a digit of that name (S101); an axis not tiled yet (S102); at least one
//           factor, each >= 1 (S103); at most kMaxAxisBlocks blocks of the axis (S104); one name
//           per factor, and one more for a remainder (S105); fresh names (S021); a digit bound
//           nowhere (S106) whose extent is the product of its parts (S107).
// Keeps:    the axis' elements and their order. Any size is legal: blocks are uneven (commir.md
//           D12).
struct Tile {
  static constexpr std::string_view kName = "tile";
  std::string axis;  // or a digit
  std::vector<std::int64_t> factors;
  std::vector<std::string> digits;
  static constexpr auto fields() {
    return std::tuple{positional("axis", &Tile::axis), positional("factors", &Tile::factors),
                      outputs("digits", &Tile::digits)};
  }
  friend bool operator==(const Tile&, const Tile&) = default;
};

constexpr std::int64_t kMaxAxisBlocks = std::int64_t{1} << 20;

struct TileFacts {
  std::size_t split = 0;     // index into NormalForm::splits; one past the end for a new split
  std::size_t position = 0;  // of the digit that is replaced
  Split parts;               // digits of `parts.axis` that replace it
};

[[nodiscard]] Checked<TileFacts> check(const ScheduleState& state, const Tile& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const TileFacts& facts);

}  // namespace harpe
