#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/units.h"

namespace harpe {

// The input of the engine: activities in queues, dependencies, and shared resources. It depends on
// neither plans nor machines. It is made from a plan (sim/build.h) or a normal form
// (search/outline.h).

enum class ResourceKind : std::uint8_t { Sm, Memory, Egress, Ingress, Message, Proxy, Bus };

struct Resource {
  ResourceKind kind = ResourceKind::Sm;
  std::int32_t rank = 0;   // the owner
  std::int32_t level = 0;  // of the machine, for links
  double capacity = 0;     // units per second: SMs, bytes per second, messages per second
  friend bool operator==(const Resource&, const Resource&) = default;
};

// How much an activity uses of a resource at full speed, in units per second.
struct Use {
  std::int32_t resource = 0;
  double rate = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

// Why an activity could not start earlier.
enum class WaitKind : std::uint8_t {
  Queue,    // the previous activity of its queue
  Event,    // an event of the same rank
  Signal,   // a signal that another rank writes
  Barrier,  // signals of all ranks of a barrier
  Member,   // a collective's other members
};
struct Dependency {
  std::int32_t before = 0;
  std::int32_t after = 0;
  WaitKind kind = WaitKind::Event;
  Picoseconds delay;  // from the end of `before` until `after` sees it
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

constexpr std::int32_t kNoQueue = -1;  // waits only for its dependencies

struct Activity {
  std::int32_t queue = kNoQueue;
  Picoseconds start;      // fixed, before the work: a launch, a copy's set-up; holds the queue
  Picoseconds work;       // at full speed; sharing resources makes it longer
  std::vector<Use> uses;  // of different resources
  // A running kernel: while it waits and its queue is free, it keeps its SMs.
  bool resident = false;
  friend bool operator==(const Activity&, const Activity&) = default;
};

struct Workload {
  std::vector<Resource> resources;
  std::vector<Activity> activities;  // those of one queue run in the order of their indices
  std::vector<Dependency> dependencies;
  std::int32_t queues = 0;
  // Per queue that is a pool: how many of its activities run at a time. Those that were ready first
  // go first, then those of least index. Queues with 0, and queues beyond the list, are FIFO.
  std::vector<std::int32_t> servers;
};

[[nodiscard]] inline bool is_pool(const Workload& workload, std::int32_t queue) {
  const auto at = static_cast<std::size_t>(queue);
  return queue != kNoQueue && at < workload.servers.size() && workload.servers[at] > 0;
}

}  // namespace harpe
