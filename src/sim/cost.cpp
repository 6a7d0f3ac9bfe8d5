#include "sim/cost.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "leaves/leaf.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr double kUnlimited = 1e30;  // the capacity of a resource that the machine does not limit

constexpr Leaf kPass = Leaf::Add;  // passes over memory run at the rate of this leaf
// What a sum by pulls takes longer between other kernels than alone, as `profile` measures it.
// Fitted to plans on 2 and 4 H200.
constexpr Picoseconds kSumBetweenKernels = from_microseconds(2.5);

enum : std::int32_t { kSmAt, kMemoryAt, kPerRank };
enum : std::int32_t { kEgressAt, kIngressAt, kMessageAt, kProxyAt, kPerLevel };

const MachineLevel& level_at(const Machine& machine, int level) {
  return machine.levels[static_cast<std::size_t>(level)];
}

// Processors inside one of the groups that a level joins.
std::int64_t inner_size(const Machine& machine, int level) {
  std::int64_t size = 1;
  for (int l = 0; l < level; ++l) size *= level_at(machine, l).size;
  return size;
}

// Groups that a level joins and that contain ranks.
std::int64_t groups_at_work(const Machine& machine, const ResourceMap& map, int level) {
  const std::int64_t inner = inner_size(machine, level);
  return std::min((map.ranks + inner - 1) / inner, level_at(machine, level).size);
}

Picoseconds duration(double units, double rate) {
  if (units <= 0) return {};
  return std::max(Picoseconds(1), from_seconds(units / rate));
}

// Spreads the units evenly over the activity's work.
void spread_use(Activity& activity, std::int32_t resource, double units) {
  if (units <= 0 || activity.work.value == 0) return;
  add_use(activity, resource, units / activity.work.seconds());
}

// Occupies the proxy thread for `time`.
Activity proxy_activity(const ResourceMap& map, RankId rank, int level, Picoseconds time) {
  Activity activity;
  activity.work = time;
  if (time.value > 0) add_use(activity, find_resource(map, ResourceKind::Proxy, rank, level), 1);
  return activity;
}

std::vector<Hop> round_ring(const Machine& machine, RankId from, RankId to, int level) {
  const std::int64_t step = inner_size(machine, level);
  const std::int64_t size = level_at(machine, level).size;
  const std::int64_t first = from.value / step % size;
  const std::int64_t last = to.value / step % size;
  const std::int64_t ahead = (last - first + size) % size;
  const std::int64_t direction = ahead <= size - ahead ? 1 : size - 1;
  std::vector<Hop> hops;
  RankId here = from;
  for (std::int64_t at = first; at != last;) {
    const std::int64_t next = (at + direction) % size;
    const RankId there = next == last ? to : RankId(here.value + (next - at) * step);
    hops.push_back({here, there, level});
    here = there;
    at = next;
  }
  return hops;
}

}  // namespace

namespace {

// The way round a ring may lead through processors that have no rank.
std::int64_t processors_in_use(const Machine& machine, std::int64_t ranks) {
  std::int64_t processors = 1;
  std::int64_t used = ranks;
  for (const MachineLevel& level : machine.levels) {
    processors *= level.size;
    if (level.kind == LevelKind::Ring) used = (used + processors - 1) / processors * processors;
  }
  return used;
}

}  // namespace

ResourceMap map_resources(const Machine& machine, std::int64_t ranks) {
  HP_CHECK(ranks <= machine.processors(), "ranks are processors of the machine");
  ResourceMap map{.ranks = ranks,
                  .levels = static_cast<std::int64_t>(machine.levels.size()),
                  .list = {},
                  .first_buses = {},
                  .group_sizes = {}};
  const std::int64_t used = processors_in_use(machine, ranks);
  for (std::int32_t rank = 0; rank < used; ++rank) {
    map.list.push_back({.kind = ResourceKind::Sm,
                        .rank = rank,
                        .capacity = static_cast<double>(machine.processor.sms)});
    map.list.push_back({.kind = ResourceKind::Memory,
                        .rank = rank,
                        .capacity = machine.processor.memory_bandwidth});
    for (std::int32_t level = 0; level < map.levels; ++level) {
      const MachineLevel& line = level_at(machine, level);
      const double messages = line.messages_per_second > 0 ? line.messages_per_second : kUnlimited;
      map.list.push_back({ResourceKind::Egress, rank, level, line.bandwidth});
      map.list.push_back({ResourceKind::Ingress, rank, level, line.bandwidth});
      map.list.push_back({ResourceKind::Message, rank, level, messages});
      map.list.push_back({ResourceKind::Proxy, rank, level, 1});
    }
  }
  std::int64_t processors = 1;
  for (std::int32_t level = 0; level < map.levels; ++level) {
    const MachineLevel& line = level_at(machine, level);
    processors *= line.size;
    map.group_sizes.push_back(processors);
    const bool bus = line.kind == LevelKind::Bus;
    map.first_buses.push_back(bus ? static_cast<std::int32_t>(map.list.size()) : -1);
    for (std::int64_t first = 0; bus && first < used; first += processors) {
      map.list.push_back(
          {ResourceKind::Bus, static_cast<std::int32_t>(first), level, line.bandwidth});
    }
  }
  return map;
}

std::int32_t find_resource(const ResourceMap& map, ResourceKind kind, RankId rank, int level) {
  const auto width = kPerRank + kPerLevel * static_cast<std::int32_t>(map.levels);
  const std::int32_t first = rank.value * width;
  const std::int32_t links = first + kPerRank + kPerLevel * level;
  const auto at = static_cast<std::size_t>(level);
  const bool link = kind == ResourceKind::Egress || kind == ResourceKind::Ingress;
  if (kind == ResourceKind::Bus || (link && map.first_buses[at] >= 0)) {
    return map.first_buses[at] + static_cast<std::int32_t>(rank.value / map.group_sizes[at]);
  }
  switch (kind) {
    case ResourceKind::Sm:
      return first + kSmAt;
    case ResourceKind::Memory:
      return first + kMemoryAt;
    case ResourceKind::Egress:
      return links + kEgressAt;
    case ResourceKind::Ingress:
      return links + kIngressAt;
    case ResourceKind::Message:
      return links + kMessageAt;
    case ResourceKind::Proxy:
      return links + kProxyAt;
    case ResourceKind::Bus:
      break;
  }
  return -1;
}

std::vector<Hop> path_between(const Machine& machine, RankId from, RankId to) {
  const int level = level_between(machine, from.value, to.value);
  const LevelKind kind = level_at(machine, level).kind;
  if (kind == LevelKind::Ring) return round_ring(machine, from, to, level);
  if (kind == LevelKind::Rail) {
    const std::int64_t inner = inner_size(machine, level);
    const RankId peer(to.value - to.value % inner + from.value % inner);
    if (peer != to) {
      std::vector<Hop> hops = {{from, peer, level}};
      for (const Hop& hop : path_between(machine, peer, to)) hops.push_back(hop);
      return hops;
    }
  }
  return {{from, to, level}};
}

Picoseconds signal_delay(const Machine& machine, RankId from, RankId to) {
  Picoseconds delay;
  for (const Hop& hop : path_between(machine, from, to)) {
    delay += level_at(machine, hop.level).latency;
  }
  return delay;
}

Picoseconds barrier_delay(const Machine& machine, const std::vector<RankId>& ranks) {
  // The first rank stands for all: between two ranks that meet at an outer level the delay hardly
  // depends on which they are, except on a ring, where the farthest are half of it apart.
  Picoseconds delay;
  for (const RankId rank : ranks) {
    if (rank == ranks.front()) continue;
    delay = std::max(delay, signal_delay(machine, ranks.front(), rank));
  }
  return delay;
}

bool has_transport(const Machine& machine, std::string_view via, RankId from, RankId to) {
  if (from == to) return true;
  return find_transport(machine, via, level_between(machine, from.value, to.value)) != nullptr;
}

void add_use(Activity& activity, std::int32_t resource, double rate) {
  const auto found = std::ranges::find(activity.uses, resource, &Use::resource);
  if (found != activity.uses.end()) {
    found->rate += rate;
  } else {
    activity.uses.push_back({resource, rate});
  }
}

void add_crossing(const Machine& machine, const ResourceMap& map, Activity& activity,
                  const TransferCost& cost) {
  for (const Hop& hop : path_between(machine, cost.from, cost.to)) {
    spread_use(activity, find_resource(map, ResourceKind::Egress, hop.from, hop.level), cost.bytes);
    const std::int32_t in = find_resource(map, ResourceKind::Ingress, hop.to, hop.level);
    if (map.first_buses[static_cast<std::size_t>(hop.level)] < 0) {
      spread_use(activity, in, cost.bytes);
    }
    spread_use(activity, find_resource(map, ResourceKind::Memory, hop.from), cost.bytes);
    spread_use(activity, find_resource(map, ResourceKind::Memory, hop.to), cost.bytes);
    if (level_at(machine, hop.level).messages_per_second > 0) {
      spread_use(activity, find_resource(map, ResourceKind::Message, hop.from, hop.level), 1);
    }
  }
}

Activity transfer_activity(const Machine& machine, const ResourceMap& map,
                           const TransferCost& cost) {
  Activity activity;
  const bool local = cost.from == cost.to;
  const int level = local ? 0 : level_between(machine, cost.from.value, cost.to.value);
  const TransportRate* const rate = find_transport(machine, cost.via, level);
  activity.start = rate != nullptr ? rate->start : machine.processor.kernel_start;
  if (local) {
    activity.work = duration(2 * cost.bytes, machine.processor.memory_bandwidth);
    spread_use(activity, find_resource(map, ResourceKind::Memory, cost.from), 2 * cost.bytes);
    return activity;
  }
  HP_CHECK(rate != nullptr, "a transport between the ranks");
  activity.work = duration(cost.bytes, cost.bandwidth > 0 ? cost.bandwidth : rate->bandwidth);
  if (activity.work.value == 0) return activity;
  add_crossing(machine, map, activity, cost);
  if (rate->sms > 0) {
    add_use(activity, find_resource(map, ResourceKind::Sm, cost.driver),
            static_cast<double>(cost.sms > 0 ? cost.sms : rate->sms));
  }
  return activity;
}

Activity compute_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                          const ComputeCost& cost) {
  const std::int64_t all = machine.processor.sms;
  const std::int64_t sms = cost.sms > 0 ? std::min(cost.sms, all) : all;
  Activity activity = launch_activity(machine);
  activity.work = leaf_time(machine, cost.leaf, cost.dtype, cost.shape, cost.causal, cost.by);
  if (cost.carried > 0) {
    activity.work += leaf_time(machine, print(kPass), cost.dtype, {.bytes = cost.carried}, false);
  }
  const Picoseconds computing =
      leaf_bound(machine, cost.leaf, cost.dtype, cost.shape.flops, 0, cost.by);
  const Picoseconds moving = duration(cost.shape.bytes, machine.processor.memory_bandwidth);
  // Fewer SMs compute more slowly, but they saturate memory all the same.
  if (sms < all && computing >= moving) {
    activity.work = activity.work.scaled(static_cast<double>(all), static_cast<double>(sms));
  }
  add_use(activity, find_resource(map, ResourceKind::Sm, rank), static_cast<double>(sms));
  // A leaf that reads from a cache may exceed the bandwidth of memory.
  const double reached = machine.processor.memory_bandwidth * activity.work.seconds();
  spread_use(activity, find_resource(map, ResourceKind::Memory, rank),
             std::min(cost.shape.bytes, reached));
  return activity;
}

Activity launch_activity(const Machine& machine) {
  Activity activity;
  activity.start = machine.processor.kernel_start;
  return activity;
}

Activity passes_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                         std::string_view dtype, std::span<const double> passes) {
  Activity activity = launch_activity(machine);
  double bytes = 0;
  for (const double pass : passes) {
    if (pass <= 0) continue;
    if (bytes > 0) activity.start += machine.processor.kernel_start;
    bytes += pass;
    activity.work += leaf_time(machine, print(kPass), dtype, {.bytes = pass}, false);
  }
  spread_use(activity, find_resource(map, ResourceKind::Memory, rank), bytes);
  return activity;
}

Activity collective_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                             const CollectiveCost& cost) {
  Activity activity = launch_activity(machine);
  const auto members = static_cast<double>(cost.members);
  double sent = cost.bytes * (members - 1) / members;
  if (cost.kind == CollectiveKind::AllGather) sent = cost.bytes * (members - 1);
  if (cost.kind == CollectiveKind::AllReduce) sent *= 2;
  if (cost.kind == CollectiveKind::SendRecv) sent = cost.bytes;
  activity.work = collective_time(machine, cost.kind, cost.level, cost.members, cost.bytes,
                                  cost.groups, cost.by);
  const bool adds =
      cost.kind == CollectiveKind::ReduceScatter || cost.kind == CollectiveKind::AllReduce;
  if (adds && collective_samples_of(machine, cost.kind, cost.level, cost.members, cost.by) ==
                  Supplier::Own) {
    activity.work += kSumBetweenKernels;
  }
  if (cost.bandwidth > 0) activity.work = std::max(activity.work, duration(sent, cost.bandwidth));
  const Activity passes = passes_activity(machine, map, rank, cost.dtype, cost.passes);
  if (passes.work.value > 0) activity.start += passes.start;
  activity.work += passes.work;
  spread_use(activity, find_resource(map, ResourceKind::Egress, rank, cost.level), sent);
  if (map.first_buses[static_cast<std::size_t>(cost.level)] < 0) {
    spread_use(activity, find_resource(map, ResourceKind::Ingress, rank, cost.level), sent);
  }
  const double passed = std::accumulate(cost.passes.begin(), cost.passes.end(), 0.0);
  spread_use(activity, find_resource(map, ResourceKind::Memory, rank), 2 * sent + passed);
  const TransportRate* const rate = find_transport(machine, "nccl", cost.level);
  if (rate != nullptr && rate->sms > 0 && activity.work.value > 0) {
    add_use(activity, find_resource(map, ResourceKind::Sm, rank), static_cast<double>(rate->sms));
  }
  return activity;
}

Activity post_activity(const Machine& machine, const ResourceMap& map, RankId rank, int level) {
  const MachineLevel& line = level_at(machine, level);
  const std::int64_t ranks = std::min(map.ranks, inner_size(machine, level) * line.size);
  const std::int64_t peers = std::max<std::int64_t>(0, ranks - inner_size(machine, level));
  const double watching = static_cast<double>(peers) * line.proxy_peer.seconds();
  return proxy_activity(map, rank, level, line.proxy_post + from_seconds(watching));
}

Activity kernel_post_activity(const Machine& machine, const ResourceMap& map, RankId rank,
                              int level) {
  Activity activity;
  activity.work = level_at(machine, level).gpu_post;
  const TransportRate* const rate = find_transport(machine, "ibgda", level);
  if (activity.work.value > 0 && rate != nullptr && rate->sms > 0) {
    add_use(activity, find_resource(map, ResourceKind::Sm, rank), static_cast<double>(rate->sms));
  }
  return activity;
}

Activity fence_activity(const Machine& machine, const ResourceMap& map, RankId rank, int level) {
  return proxy_activity(map, rank, level, level_at(machine, level).proxy_fence);
}

Picoseconds completion_delay(const Machine& machine, const ResourceMap& map, int level,
                             std::int64_t outstanding, Picoseconds alone) {
  return completion_time(machine, level, groups_at_work(machine, map, level), outstanding, alone);
}

Picoseconds nic_drain_delay(const Machine& machine, const ResourceMap& map, int level) {
  return nic_drain_time(machine, level, groups_at_work(machine, map, level));
}

Activity signal_activity(const Machine& machine, const ResourceMap& map, RankId rank, int level) {
  Activity activity = proxy_activity(map, rank, level, level_at(machine, level).proxy_word);
  spread_use(activity, find_resource(map, ResourceKind::Message, rank, level), 1);
  return activity;
}

Activity count_activity(const Machine& machine, const ResourceMap& map, RankId rank, int level) {
  return proxy_activity(map, rank, level, level_at(machine, level).proxy_count);
}

}  // namespace harpe
