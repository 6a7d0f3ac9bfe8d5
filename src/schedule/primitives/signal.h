#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/moves.h"

namespace harpe {

// signal(N, X, over=A, kind=k, fence=f):  stage X over A …  ->  stage X over A … signal k fence f
// Requires: moves (S011-S016, S020, S025); a kind or a fence (S461); a kind that the move's
//           transport offers (S462); a fence only if a signal can overtake its put: proxy and ibgda
//           (S463); a change (S008).
// Keeps:    what is computed.
struct SignalBy {
  static constexpr std::string_view kName = "signal";
  std::string nest;
  std::vector<std::string> buffers;
  MeshRef over;
  std::optional<MoveKind> move;
  std::optional<Signal> kind;
  std::optional<Fence> fence;
  static constexpr auto fields() {
    return std::tuple{
        positional("nest", &SignalBy::nest), positional("buffers", &SignalBy::buffers),
        keyword("over", &SignalBy::over),    keyword("move", &SignalBy::move),
        keyword("kind", &SignalBy::kind),    keyword("fence", &SignalBy::fence)};
  }
  friend bool operator==(const SignalBy&, const SignalBy&) = default;
};

struct SignalByFacts {
  FoundMoves moves;
  std::optional<Signal> kind;
  std::optional<Fence> fence;
};

[[nodiscard]] Checked<SignalByFacts> check(const ScheduleState& state, const SignalBy& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const SignalByFacts& facts);

}  // namespace harpe
