#pragma once

#include <string>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// shard(X, d, a):  place X[…]  ->  place X[…, d@a]: the rank at coordinate i holds block i
// Requires: a buffer (S012); a digit (S013) of X (S301); mesh axes (S014-S016), with as many ranks
//           as blocks (S302), none of which X's home uses (S303); a digit not placed yet (S304).
// Keeps:    what is computed. Which rank holds which part of X at entry and exit changes.
struct Shard {
  static constexpr std::string_view kName = "shard";
  std::string buffer;
  std::string digit;
  MeshRef axes;
  static constexpr auto fields() {
    return std::tuple{positional("buffer", &Shard::buffer), positional("digit", &Shard::digit),
                      positional("axes", &Shard::axes)};
  }
  friend bool operator==(const Shard&, const Shard&) = default;
};

struct ShardFacts {
  std::string buffer;
  Placement placement;
};

[[nodiscard]] Checked<ShardFacts> check(const ScheduleState& state, const Shard& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const ShardFacts& facts);

// The first of `axes` that the buffer's home already uses, or "".
[[nodiscard]] std::string find_axis_in_home(const NormalForm& form, std::string_view buffer,
                                            const MeshRef& axes);
// The buffer's `place` line; creates it if there is none (temporaries). Lines are in the program's
// order.
[[nodiscard]] Place& place_of(ScheduleState& state, const std::string& buffer);

}  // namespace harpe
