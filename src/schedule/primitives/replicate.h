#pragma once

#include <string>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// replicate(N, a):  N  ->  N: the ranks along a compute the same
// Requires: a nest (S011); mesh axes (S014-S016) that no par of N uses (S221).
// Keeps:    everything. Replication is what happens to an axis no par uses; the step says that it
// is
//           meant, and fails when a later edit parallelizes over the axis before it.
struct Replicate {
  static constexpr std::string_view kName = "replicate";
  std::string nest;
  MeshRef axes;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Replicate::nest), positional("axes", &Replicate::axes)};
  }
  friend bool operator==(const Replicate&, const Replicate&) = default;
};

// No change to the form: that is the fact.
struct ReplicateFacts {
  std::size_t nest = 0;
  std::int64_t copies = 1;  // ranks that compute the same
};

[[nodiscard]] Checked<ReplicateFacts> check(const ScheduleState& state, const Replicate& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const ReplicateFacts& facts);

}  // namespace harpe
