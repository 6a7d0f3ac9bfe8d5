#pragma once

#include <optional>
#include <string>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// patch(N, kernel="k", sm=n):  leaf  ->  leaf kernel "k" sm n
// patch(N, kernel="any"):      leaf kernel "k"  ->  leaf
// Requires: a nest (S011); a kernel or a budget (S501); a kernel that an executor offers (S502) for
//           the nest's leaf (S503), which supports chunks if the leaf is chunked (S504) and remote
//           operands if one is read inline (S505); 1 <= n <= kMaxSms (S511); a choice that differs
//           from the present one (S008).
// Keeps:    what is computed: every kernel of a leaf meets its contract.
struct Patch {
  static constexpr std::string_view kName = "patch";
  std::string nest;
  std::optional<Quoted> kernel;
  std::optional<std::int64_t> sm;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Patch::nest), keyword("kernel", &Patch::kernel),
                      keyword("sm", &Patch::sm)};
  }
  friend bool operator==(const Patch&, const Patch&) = default;
};

struct PatchFacts {
  std::size_t nest = 0;
  LeafChoice leaf;  // the new choice
};

[[nodiscard]] Checked<PatchFacts> check(const ScheduleState& state, const Patch& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const PatchFacts& facts);

}  // namespace harpe
