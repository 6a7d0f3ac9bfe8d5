#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/moves.h"

namespace harpe {

// stage(N, X, over=A, at=d, how=h):  for d { s }  ->  for d { stage X over A h; s }
// Without `at` the stage is at the nest's top, outside all loops. Several buffers are staged in
// order.
// Requires: a nest (S011), a loop of it (S019), buffers (S012, S025) that it reads (S401), mesh
//           axes (S014-S016) over which they are not staged yet (S026);
//           relay: `for d skew A`, forwards, |d| = |A|, d a digit of X (S402);
//           inline: a leaf, and the kernel if one is chosen, that reads operands in place (S403),
//           by the reader (S404); no one_shot (S405).
// Keeps:    what is computed, if the operand rule (commir.md 4.2) holds at the end of the script.
struct Stage {
  static constexpr std::string_view kName = "stage";
  std::string nest;
  std::vector<std::string> buffers;
  MeshRef over;
  std::optional<std::string> at;
  How how = How::Bulk;
  std::optional<Initiator> by;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Stage::nest), positional("buffers", &Stage::buffers),
                      keyword("over", &Stage::over),    keyword("at", &Stage::at),
                      keyword("how", &Stage::how),      keyword("by", &Stage::by)};
  }
  friend bool operator==(const Stage&, const Stage&) = default;
};

struct StageFacts {
  NewMoves added;
};

[[nodiscard]] Checked<StageFacts> check(const ScheduleState& state, const Stage& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const StageFacts& facts);

}  // namespace harpe
