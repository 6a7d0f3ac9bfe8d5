#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/moves.h"

namespace harpe {

// chunk(N, X, over=A, by=d):  stage X over A …  ->  stage X over A … grain d
// One transfer and one signal per value of d instead of one for the whole region.
// Requires: moves (S011-S016, S020, S025); an explicit digit (S013, S018) of X or, for a routed
//           access, any digit of the iteration space (S431), with more than one value at the move's
//           position (S432); not inline, which transfers nothing (S433); a chunk that differs from
//           the present one (S008).
// Keeps:    what is computed.
struct ChunkMove {
  static constexpr std::string_view kName = "chunk";
  std::string nest;
  std::vector<std::string> buffers;
  MeshRef over;
  std::optional<MoveKind> move;
  std::string digit;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &ChunkMove::nest),
                      positional("buffers", &ChunkMove::buffers), keyword("over", &ChunkMove::over),
                      keyword("move", &ChunkMove::move), keyword("by", &ChunkMove::digit)};
  }
  static bool selects(const Step& step);  // the form with `over=`
  friend bool operator==(const ChunkMove&, const ChunkMove&) = default;
};

struct ChunkMoveFacts {
  FoundMoves moves;
  std::string digit;
};

[[nodiscard]] Checked<ChunkMoveFacts> check(const ScheduleState& state, const ChunkMove& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const ChunkMoveFacts& facts);

// chunk(N, leaf, d, order=[e, a]):  leaf …  ->  leaf … chunk d order skew(e, a)
// The kernel visits d in its innermost loop and waits for each chunk. With an order, it visits e in
// the loop around it, starting at the rank's coordinate on a.
// Requires: the word `leaf` (S441); a nest (S011); digits that it may bind (S013, S022-S024), d and
//           e different (S442); mesh axes (S014-S016) whose number of ranks divides |e| (S443); a
//           leaf, and the kernel if one is chosen, that can be chunked (S444); a choice that
//           differs from the present one (S008).
// Keeps:    what is computed.
struct ChunkLeaf {
  static constexpr std::string_view kName = "chunk";
  std::string nest;
  std::string leaf;
  std::string digit;
  std::optional<std::vector<std::string>> order;  // a digit, then mesh axes
  static constexpr auto fields() {
    return std::tuple{positional("nest", &ChunkLeaf::nest), positional("leaf", &ChunkLeaf::leaf),
                      positional("digit", &ChunkLeaf::digit), keyword("order", &ChunkLeaf::order)};
  }
  static bool selects(const Step& step);  // the form without `over=`
  friend bool operator==(const ChunkLeaf&, const ChunkLeaf&) = default;
};

struct ChunkLeafFacts {
  std::size_t nest = 0;
  std::string digit;
  std::optional<Call> order;
};

[[nodiscard]] Checked<ChunkLeafFacts> check(const ScheduleState& state, const ChunkLeaf& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const ChunkLeafFacts& facts);

}  // namespace harpe
