#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/moves.h"

namespace harpe {

// drain(N, X, over=A, at=d, how=h):  for d { s }  ->  for d { drain X over A h; s }
// Contributions made inside `for d` are sent towards X's home when an iteration of the loop ends.
// Requires: a nest (S011), a loop of it (S019), buffers (S012, S025) that it writes (S411), mesh
//           axes (S014-S016) over which they are not drained yet (S026);
//           relay: `for d skew A`, forwards, |d| = |A|, d a digit of X (S412); every axis of A has
//           a par digit that is not X's, so that the travelling sums are disjoint (S413); X's home
//           has one tile along every axis of A (S414); inline: a leaf that can write its result in
//           another rank's memory (S415).
// Keeps:    what is computed, if the output coverage rule (commir.md 4.3) holds at the end of the
//           script.
struct Drain {
  static constexpr std::string_view kName = "drain";
  std::string nest;
  std::vector<std::string> buffers;
  MeshRef over;
  std::optional<std::string> at;
  How how = How::Bulk;
  std::optional<Initiator> by;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Drain::nest), positional("buffers", &Drain::buffers),
                      keyword("over", &Drain::over),    keyword("at", &Drain::at),
                      keyword("how", &Drain::how),      keyword("by", &Drain::by)};
  }
  friend bool operator==(const Drain&, const Drain&) = default;
};

struct DrainFacts {
  NewMoves added;
};

[[nodiscard]] Checked<DrainFacts> check(const ScheduleState& state, const Drain& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const DrainFacts& facts);

}  // namespace harpe
