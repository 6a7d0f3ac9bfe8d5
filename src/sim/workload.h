#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/units.h"

namespace harpe {

// What the engine runs: activities in queues, dependencies, and resources they share. Knows neither
// plans nor machines. Made from a plan (sim/build.h) or from a normal form (search/outline.h).

enum class ResourceKind : std::uint8_t { Sm, Memory, Egress, Ingress, Message, Proxy, Bus };

struct Resource {
  ResourceKind kind = ResourceKind::Sm;
  std::int32_t rank = 0;   // whose
  std::int32_t level = 0;  // of the machine, for links
  double capacity = 0;     // units per second: SMs, bytes per second, messages per second
  friend bool operator==(const Resource&, const Resource&) = default;
};

// What an activity takes of a resource while it runs at full speed, in units per second.
struct Use {
  std::int32_t resource = 0;
  double rate = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

// Why an activity could not start earlier.
enum class WaitKind : std::uint8_t {
  Queue,    // its queue was busy with the one before
  Event,    // an event of the same rank
  Signal,   // a signal that another rank writes
  Barrier,  // all ranks' signals
  Member,   // a collective's other members
};
struct Dependency {
  std::int32_t before = 0;
  std::int32_t after = 0;
  WaitKind kind = WaitKind::Event;
  Picoseconds delay;  // from the end of `before` until `after` knows of it
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

constexpr std::int32_t kNoQueue = -1;  // waits for its dependencies alone

struct Activity {
  std::int32_t queue = kNoQueue;
  Picoseconds start;      // fixed, at its beginning: a launch, a copy's set-up; holds the queue
  Picoseconds work;       // at full speed; shares of resources make it longer
  std::vector<Use> uses;  // of different resources
  // Of a running kernel: while it waits, its queue free, it keeps what it uses of the SMs.
  bool resident = false;
  friend bool operator==(const Activity&, const Activity&) = default;
};

struct Workload {
  std::vector<Resource> resources;
  std::vector<Activity> activities;  // those of one queue run in the order of their indices
  std::vector<Dependency> dependencies;
  std::int32_t queues = 0;
  // Per queue, where it is not a queue: how many of its activities run at a time, those first that
  // were ready first, and of these the one of least index. Queues beyond the list, and those of 0,
  // are queues.
  std::vector<std::int32_t> servers;
};

[[nodiscard]] inline bool is_pool(const Workload& workload, std::int32_t queue) {
  const auto at = static_cast<std::size_t>(queue);
  return queue != kNoQueue && at < workload.servers.size() && workload.servers[at] > 0;
}

}  // namespace harpe
