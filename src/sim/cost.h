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

// The costs of single steps on a machine, as activities over its resources (docs/simulator.md).
// Simulations of plans (sim/build.h) and the search's outlines of normal forms use them. Rank r is
// processor r. Activities come without a queue; no function reads a plan.

// The later start of a GEMM kernel that waits for signals, or for launches other than the Entry;
// fitted to plans on 2 H200.
inline constexpr Picoseconds kBehindOthers = from_microseconds(7.0);

// The resources of the first `ranks` processors of a machine, and the index of each in the list.
struct ResourceMap {
  std::int64_t ranks = 0;
  std::int64_t levels = 0;
  std::vector<Resource> list;             // Workload::resources
  std::vector<std::int32_t> first_buses;  // per level: index of its first group's bus; -1: no bus
  std::vector<std::int64_t> group_sizes;  // per level: processors that it joins
  friend bool operator==(const ResourceMap&, const ResourceMap&) = default;
};
// Requires: check_machine; ranks <= machine.processors().
[[nodiscard]] ResourceMap map_resources(const Machine& machine, std::int64_t ranks);
// On a bus level, one resource is the egress and the ingress of all ranks. `level` matters for
// links, messages and proxies only.
[[nodiscard]] std::int32_t find_resource(const ResourceMap& map, ResourceKind kind, RankId rank,
                                         int level = 0);

// One hop of a transfer, over the ports of one level.
struct Hop {
  RankId from;
  RankId to;
  int level = 0;
  friend bool operator==(const Hop&, const Hop&) = default;
};
// On a ring the path goes from neighbour to neighbour, the shorter way. To another rail it uses the
// own rail, then the destination's group. Requires: different ranks.
[[nodiscard]] std::vector<Hop> path_between(const Machine& machine, RankId from, RankId to);

// From the write of a signal until another rank sees it: the latencies of the hops.
[[nodiscard]] Picoseconds signal_delay(const Machine& machine, RankId from, RankId to);
// The largest signal delay between two of the ranks.
[[nodiscard]] Picoseconds barrier_delay(const Machine& machine, const std::vector<RankId>& ranks);

struct TransferCost {
  std::string_view via = {};
  RankId from;
  RankId to;
  double bytes = 0;
  RankId driver = {};    // the rank whose SMs it uses, if any
  std::int64_t sms = 0;  // SMs that it uses; 0: the transport's default
  double bandwidth = 0;  // 0: the transport's
};
// Takes start + bytes / bandwidth when alone. It uses the ports along its path, memory at both
// ends, and a message of each NIC. Within a rank it is a copy in memory, with the transport's start
// at the innermost level. Requires: has_transport.
[[nodiscard]] Activity transfer_activity(const Machine& machine, const ResourceMap& map,
                                         const TransferCost& cost);
// Adds the resource uses of a transfer, with `bytes` spread over the activity's work. Requires:
// work above 0.
void add_crossing(const Machine& machine, const ResourceMap& map, Activity& activity,
                  const TransferCost& cost);
[[nodiscard]] bool has_transport(const Machine& machine, std::string_view via, RankId from,
                                 RankId to);

struct ComputeCost {
  std::string_view leaf;
  std::string_view dtype;
  LeafShape shape;
  double carried = 0;  // bytes of states that tiles read first; nothing overlaps that
  bool causal = false;
  std::int64_t sms = 0;  // that the leaf may use; 0: all
  Supplier by = Supplier::Own;
};
// One launch of a leaf: kernel_start, then the leaf's time alone on that many SMs.
[[nodiscard]] Activity compute_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                        const ComputeCost& cost);

// A launch without work.
[[nodiscard]] Activity launch_activity(const Machine& machine);

// Launches that only touch memory, one after the other, at the machine's rate for additions: fold,
// finalise, init, pack, unpack. `passes` are the bytes that each reads and writes.
[[nodiscard]] Activity passes_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                       std::string_view dtype, std::span<const double> passes);

struct CollectiveCost {
  CollectiveKind kind = CollectiveKind::AllGather;
  std::int64_t members = 1;
  int level = 0;            // the level at which they meet: level_of_group
  std::int64_t groups = 0;  // groups below it that have members; 0: as few as possible
  double bytes = 0;         // that one rank contributes
  // Besides its traffic, a member makes these passes over its memory, in bytes, of this type.
  std::vector<double> passes = {};
  std::string_view dtype = {};
  double bandwidth = 0;  // upper limit of what enters the member; 0: the machine's curve
  Supplier by = Supplier::Own;
};
// One member's part of a library collective: a launch, then collective_time. The caller makes the
// members start together. Port traffic is spread evenly over the time.
[[nodiscard]] Activity collective_activity(const Machine& machine, const ResourceMap& map,
                                           RankId rank, const CollectiveCost& cost);

// The proxy thread posts a put at the level that the put crosses, and is free afterwards.
[[nodiscard]] Activity post_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                     int level);
// The same for a kernel that posts: it uses SMs, and posts the put's signal too.
[[nodiscard]] Activity kernel_post_activity(const Machine& machine, const ResourceMap& map,
                                            RankId rank, int level);
// The proxy thread's part of a quiet, once all puts that it waits for are known to have arrived.
[[nodiscard]] Activity fence_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                      int level);
// From the arrival of a put, whose flight alone takes `alone`, until a quiet that covers it and
// other puts has detected it, while all groups with ranks send.
[[nodiscard]] Picoseconds completion_delay(const Machine& machine, const ResourceMap& map,
                                           int level, std::int64_t outstanding, Picoseconds alone);
// How long a NIC needs to drain earlier puts before a signal, while as many groups send; 0 if it
// does not drain.
[[nodiscard]] Picoseconds nic_drain_delay(const Machine& machine, const ResourceMap& map,
                                          int level);
// The proxy thread raises a signal: a small message.
[[nodiscard]] Activity signal_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                       int level);
// The receiver's proxy thread counts a put's immediate data.
[[nodiscard]] Activity count_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                                      int level);

// Adds `rate` to the use of a resource. Each resource occurs once.
void add_use(Activity& activity, std::int32_t resource, double rate);

}  // namespace harpe
