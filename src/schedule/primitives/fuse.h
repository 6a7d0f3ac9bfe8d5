#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// fuse(K, [n1, n2], persistent=true):  nests n1, n2  ->  fuse K = n1, n2 persistent: one launch
// Requires: a name that no nest or fusion has (S521); nests or earlier fusions (S522), at least one
//           (S523), in no fusion yet (S524), adjacent in the program (S525); 1 <= sm <= kMaxSms
//           (S511); 1 <= warps <= kMaxWarps (S526).
// Keeps:    what is computed; waits between the nests become waits inside one kernel.
struct FuseNests {
  static constexpr std::string_view kName = "fuse";
  std::string name;
  std::vector<std::string> nests;
  bool persistent = false;
  std::optional<std::int64_t> sm;
  std::optional<std::int64_t> warps;
  static constexpr auto fields() {
    return std::tuple{positional("name", &FuseNests::name),
                      positional_list("nests", &FuseNests::nests),
                      keyword("persistent", &FuseNests::persistent), keyword("sm", &FuseNests::sm),
                      keyword("warps", &FuseNests::warps)};
  }
  friend bool operator==(const FuseNests&, const FuseNests&) = default;
};

constexpr std::int64_t kMaxWarps = 64;  // per SM

struct FuseNestsFacts {
  Fuse line;
};

[[nodiscard]] Checked<FuseNestsFacts> check(const ScheduleState& state, const FuseNests& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const FuseNestsFacts& facts);

}  // namespace harpe
