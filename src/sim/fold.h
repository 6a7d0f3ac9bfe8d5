#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine.h"
#include "sim/workload.h"

namespace harpe {

// A workload in which activities that always run at the same time are one activity. Activities are
// of one class if they cost the same, wait for equally many activities of each class, and use the
// same amounts of resources of the same classes. Resources are of one class if they have the same
// capacity and equally many users of each class. Then all activities of a class start, slow down
// and end together (docs/simulator.md), and one representative suffices. It uses as much of a
// resource as its whole class uses of one such resource, so its port carries both what it sends and
// receives.
struct Quotient {
  Workload workload;                         // per class
  std::vector<std::int32_t> class_of;        // per activity
  std::vector<std::int32_t> resource_class;  // per resource
  std::vector<std::int32_t> representative;  // per class: its first activity
};

// The coarsest such classes. None if there are not at least twice as few classes as activities, if
// a queue is a pool, where the order among equal activities matters, or if the time limit is over.
[[nodiscard]] std::optional<Quotient> fold(const Workload& workload, const TimeLimit& limit = {});

// The run of the whole workload, derived from the run of its quotient.
[[nodiscard]] EngineRun unfold(const Workload& workload, const Quotient& quotient,
                               const EngineRun& folded);

}  // namespace harpe
