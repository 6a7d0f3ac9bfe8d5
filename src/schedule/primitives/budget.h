#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/moves.h"

namespace harpe {

// budget(N, sm=n):            leaf …            ->  leaf … sm n
// budget(N, X, over=A, sm=n): stage X over A …  ->  stage X over A … sm n
// Requires: a nest (S011); 1 <= n <= kMaxSms (S511); buffers and axes together or neither (S512);
//           moves (S012-S016, S020, S025) whose transport runs on SMs (S513); a budget that differs
//           from the present one (S008).
// Keeps:    what is computed.
struct Budget {
  static constexpr std::string_view kName = "budget";
  std::string nest;
  std::optional<std::vector<std::string>> buffers;
  std::optional<MeshRef> over;
  std::optional<MoveKind> move;
  std::int64_t sm = 1;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Budget::nest), positional("buffers", &Budget::buffers),
                      keyword("over", &Budget::over), keyword("move", &Budget::move),
                      keyword("sm", &Budget::sm)};
  }
  friend bool operator==(const Budget&, const Budget&) = default;
};

constexpr std::int64_t kMaxSms = 132;  // of one GPU, the largest supported

struct BudgetFacts {
  FoundMoves moves;  // no items: the leaf's budget
  std::int64_t sm = 1;
};

[[nodiscard]] Checked<BudgetFacts> check(const ScheduleState& state, const Budget& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const BudgetFacts& facts);

// Errors: S511.
[[nodiscard]] Checked<Ok> check_sm_count(std::int64_t sm);

}  // namespace harpe
