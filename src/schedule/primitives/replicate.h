#pragma once

#include <string>

#include "schedule/fields.h"
#include "schedule/state.h"

namespace harpe {

// replicate(N, a):  N  ->  N: the ranks along a compute the same
// Requires: a nest (S011); mesh axes (S014-S016) that no par of N uses (S221).
// Keeps:    everything. An axis that no par uses is replicated anyway; the step states the
//           intention, and fails if a later edit parallelizes over the axis before it.
struct Replicate {
  static constexpr std::string_view kName = "replicate";
  std::string nest;
  MeshRef axes;
  static constexpr auto fields() {
    return std::tuple{positional("nest", &Replicate::nest), positional("axes", &Replicate::axes)};
  }
  friend bool operator==(const Replicate&, const Replicate&) = default;
};

// The form does not change; these facts are all.
struct ReplicateFacts {
  std::size_t nest = 0;
  std::int64_t copies = 1;  // ranks that compute the same
};

[[nodiscard]] Checked<ReplicateFacts> check(const ScheduleState& state, const Replicate& step);
[[nodiscard]] ScheduleState apply(ScheduleState state, const ReplicateFacts& facts);

}  // namespace harpe
