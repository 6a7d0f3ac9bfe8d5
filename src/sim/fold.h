#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine.h"
#include "sim/workload.h"

namespace harpe {

// A workload in which activities that run at the same time, whatever happens, are one. Activities
// are of one class when they cost the same, wait for as many of each class, and take as much of
// resources of the same class; resources, when they have the same capacity and as many users of
// each class. Then all of a class start, slow down and end together (docs/simulator.md), and one of
// them suffices: it takes of a resource what all its kind take of one such resource, so that a
// representative's port carries both what it sends and what it receives.
struct Quotient {
  Workload workload;                         // per class
  std::vector<std::int32_t> class_of;        // per activity
  std::vector<std::int32_t> resource_class;  // per resource
  std::vector<std::int32_t> representative;  // per class: its first activity
};

// The coarsest such classes; none where they are not at least twice as few as activities, or where
// a queue is a pool: who goes first there is decided among alike. Nor where the time is over.
[[nodiscard]] std::optional<Quotient> fold(const Workload& workload, const TimeLimit& limit = {});

// What the whole workload does, given what its quotient does.
[[nodiscard]] EngineRun unfold(const Workload& workload, const Quotient& quotient,
                               const EngineRun& folded);

}  // namespace harpe
