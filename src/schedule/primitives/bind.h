#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/moves.h"

namespace harpe {

// bind(N, X, over=A, via=t):  stage X over A …  ->  stage X over A … via t
// Requires: moves (S011-S016, S020, S025); by the capability matrix (commir.md 7.4): sm or tma for
//           inline (S451); by=src for a transport that only the source can start (S452); no
//           initiator for nccl, which all ranks start together (S453); if a signal is chosen, one
//           that the transport offers (S454); no fence on a transport without fences (S455); not
//           multimem, which needs NVLink multicast (S456); a transport that differs from the
//           present one (S008).
// Keeps:    what is computed.
struct Bind {
  static constexpr std::string_view kName = "bind";
  std::string nest;
  std::vector<std::string> buffers;
  MeshRef over;
  std::optional<MoveKind> move;
  Via via = Via::Ce;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Bind::nest), positional("buffers", &Bind::buffers),
                      keyword("over", &Bind::over), keyword("move", &Bind::move),
                      keyword("via", &Bind::via)};
  }
  friend bool operator==(const Bind&, const Bind&) = default;
};

struct BindFacts {
  FoundMoves moves;
  Via via = Via::Ce;
};

[[nodiscard]] Checked<BindFacts> check(const ScheduleState& state, const Bind& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const BindFacts& facts);

}  // namespace harpe
