#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "machine/rates.h"
#include "sim/workload.h"
#include "support/ids.h"

namespace harpe {

// What single things cost on a machine, as activities over its resources (docs/simulator.md). Used
// by simulations of plans (sim/build.h) and of outlines that the search makes from normal forms.
// Rank r is processor r. Activities come without a queue; no function looks at a plan.

// The resources of the first `ranks` processors of a machine, and where each is in the list.
struct ResourceMap {
  std::int64_t ranks = 0;
  std::int64_t levels = 0;
  std::vector<Resource> list;             // Workload::resources
  std::vector<std::int32_t> first_buses;  // per level: its groups' buses begin here; -1: no bus
  std::vector<std::int64_t> group_sizes;  // per level: processors that it joins
  friend bool operator==(const ResourceMap&, const ResourceMap&) = default;
};
// Requires: check_machine; ranks <= machine.processors().
[[nodiscard]] ResourceMap map_resources(const Machine& machine, std::int64_t ranks);
// Of a level that is a bus, its one resource is egress and ingress of all. `level` counts for
// links, messages and proxies.
[[nodiscard]] std::int32_t find_resource(const ResourceMap& map, ResourceKind kind, RankId rank,
                                         int level = 0);

// One stretch of a transfer's way: over one level's ports.
struct Hop {
  RankId from;
  RankId to;
  int level = 0;
  friend bool operator==(const Hop&, const Hop&) = default;
};
// Neighbour by neighbour round a ring, the shorter way; to another rail over the own rail, then
// inside the group. Requires: different ranks.
[[nodiscard]] std::vector<Hop> path_between(const Machine& machine, RankId from, RankId to);

// From a signal being written until another rank sees it: the latencies of the hops.
[[nodiscard]] Picoseconds signal_delay(const Machine& machine, RankId from, RankId to);
// The largest over any two of the ranks.
[[nodiscard]] Picoseconds barrier_delay(const Machine& machine, const std::vector<RankId>& ranks);

struct TransferCost {
  std::string_view via = {};
  RankId from;
  RankId to;
  double bytes = 0;
  RankId driver = {};    // whose SMs it takes, where it takes some
  std::int64_t sms = 0;  // that it takes; 0: as many as the transport's line says
  double bandwidth = 0;  // 0: the transport's
};
// start + bytes / bandwidth alone; takes ports along its way, memory at both ends, a message of
// each NIC. Within a rank: a copy in memory, after the transport's start at the innermost level.
// Requires: has_transport.
[[nodiscard]] Activity transfer_activity(const Machine& machine, const ResourceMap& map,
                                         const TransferCost& cost);
// The uses of a transfer alone: `bytes` spread over the activity's work. Requires: work above 0.
void add_crossing(const Machine& machine, const ResourceMap& map, Activity& activity,
                  const TransferCost& cost);
[[nodiscard]] bool has_transport(const Machine& machine, std::string_view via, RankId from,
                                 RankId to);

struct ComputeCost {
  std::string_view leaf;
  std::string_view dtype;
  LeafShape shape;
  double carried = 0;  // bytes of states that tiles read before they begin, and that nothing hides
  bool causal = false;
  std::int64_t sms = 0;  // that the leaf may use; 0: all
  Supplier by = Supplier::Own;
};
// One launch of a leaf: kernel_start, then its time alone on that many SMs.
[[nodiscard]] Activity compute_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                        const ComputeCost& cost);

// A launch that finds nothing to do.
[[nodiscard]] Activity launch_activity(const Machine& machine);

// Launches that only touch memory, one after the other, at the machine's rate for additions: fold,
// finalise, init, pack, unpack. Of each the bytes that it reads and writes.
[[nodiscard]] Activity passes_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                       std::string_view dtype, std::span<const double> passes);

struct CollectiveCost {
  CollectiveKind kind = CollectiveKind::AllGather;
  std::int64_t members = 1;
  int level = 0;            // at which they meet: level_of_group
  std::int64_t groups = 0;  // below it among which they are spread; 0: as few as hold them
  double bytes = 0;         // that one rank puts in
  // Of the member beside what crosses: bytes of each pass over its memory, in such elements.
  std::vector<double> passes = {};
  std::string_view dtype = {};
  double bandwidth = 0;  // at most, of what enters the member; 0: as the machine's curve says
  Supplier by = Supplier::Own;
};
// One member's part of a library collective: a launch, then collective_time. The caller lets the
// members start together. Traffic of the ports is spread evenly over the time.
[[nodiscard]] Activity collective_activity(const Machine& machine, const ResourceMap& map,
                                           RankId rank, const CollectiveCost& cost);

// The proxy thread's part of a put at the level that the put crosses: it posts, then is free.
[[nodiscard]] Activity post_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                     int level);
// The same of a kernel that posts: on multiprocessors, and with the signal behind the put.
[[nodiscard]] Activity kernel_post_activity(const Machine& machine, const ResourceMap& map,
                                            RankId rank, int level);
// The proxy thread's part of a drain, once all it waits for is known to have arrived.
[[nodiscard]] Activity fence_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                      int level);
// From a put being on the other side, whose way alone takes so long, until a drain of it and others
// knows: all groups that have ranks are at work.
[[nodiscard]] Picoseconds completion_delay(const Machine& machine, const ResourceMap& map,
                                           int level, std::int64_t outstanding, Picoseconds alone);
// Of a NIC that drains what is before a signal, while as many groups are at work. 0: it does not.
[[nodiscard]] Picoseconds nic_drain_delay(const Machine& machine, const ResourceMap& map,
                                          int level);
// The proxy thread raises a signal: a small message.
[[nodiscard]] Activity signal_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                       int level);
// The proxy thread of the receiver counts a put's immediate data.
[[nodiscard]] Activity count_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                      int level);

// Takes `rate` more of a resource; a resource is there once.
void add_use(Activity& activity, std::int32_t resource, double rate);

}  // namespace harpe
