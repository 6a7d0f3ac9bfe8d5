#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/moves.h"

namespace harpe {

// pipeline(N, X, over=A, depth=n):  stage X over A …  ->  stage X over A … depth n
// n slots: iteration t uses slot t mod n, so transfers run n-1 iterations ahead.
// Requires: moves (S011-S016, S020, S025); 1 <= n <= kMaxDepth (S421); at least 2 for a relay,
//           which reads one slot while the next one fills (S422); not inline, which has no slots
//           (S423); a depth that differs from the present one (S008).
// Keeps:    what is computed.
struct Pipeline {
  static constexpr std::string_view kName = "pipeline";
  std::string nest;
  std::vector<std::string> buffers;
  MeshRef over;
  std::optional<MoveKind> move;
  std::int64_t depth = 1;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Pipeline::nest),
                      positional("buffers", &Pipeline::buffers), keyword("over", &Pipeline::over),
                      keyword("move", &Pipeline::move), keyword("depth", &Pipeline::depth)};
  }
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

constexpr std::int64_t kMaxDepth = 64;

struct PipelineFacts {
  FoundMoves moves;
  std::int64_t depth = 1;
};

[[nodiscard]] Checked<PipelineFacts> check(const ScheduleState& state, const Pipeline& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const PipelineFacts& facts);

}  // namespace harpe
