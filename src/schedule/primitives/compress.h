#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/moves.h"

namespace harpe {

// compress(N, X, over=A, wire=t):  stage X over A …  ->  stage X over A … wire t
// Requires: moves (S011-S016, S020, S025); by the numerics contract (commir.md 9): a floating wire
//           dtype (S471); a stage of a floating buffer or a drain of a sum (S472); a wire dtype no
//           wider than the data, which has the buffer's dtype or its partial states' (S473); not
//           inline, which has no wire (S474); a dtype that differs from the present one (S008).
// Keeps:    what is computed up to one rounding to t per transfer: numerics class wire(t).
struct Compress {
  static constexpr std::string_view kName = "compress";
  std::string nest;
  std::vector<std::string> buffers;
  MeshRef over;
  std::optional<MoveKind> move;
  DType wire = DType::BF16;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Compress::nest),
                      positional("buffers", &Compress::buffers), keyword("over", &Compress::over),
                      keyword("move", &Compress::move), keyword("wire", &Compress::wire)};
  }
  friend bool operator==(const Compress&, const Compress&) = default;
};

struct CompressFacts {
  FoundMoves moves;
  DType wire = DType::BF16;
};

[[nodiscard]] Checked<CompressFacts> check(const ScheduleState& state, const Compress& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const CompressFacts& facts);

}  // namespace harpe
