#include "machine/rates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "support/check.h"

namespace harpe {
namespace {

// Processors in one group of a level.
std::int64_t group_size(const Machine& machine, int level) {
  std::int64_t count = 1;
  for (int inner = 0; inner <= level; ++inner) {
    count *= machine.levels[static_cast<std::size_t>(inner)].size;
  }
  return count;
}

// What one member sends over its own port in an optimal collective, in units of its input.
double traffic(CollectiveKind kind, std::int64_t ranks) {
  const auto all = static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::AllGather:
      return all - 1;
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
      return (all - 1) / all;
    case CollectiveKind::AllReduce:
      return 2 * (all - 1) / all;
    case CollectiveKind::SendRecv:
      return 1;
  }
  return 1;
}

// What crosses between `groups` of equally many members, per member. Reductions happen within a
// group first, and gathered parts are spread over its members.
double crossing(CollectiveKind kind, std::int64_t ranks, std::int64_t groups) {
  const double within = static_cast<double>(ranks) / static_cast<double>(groups);
  switch (kind) {
    case CollectiveKind::AllGather:
    case CollectiveKind::AllToAll:
    case CollectiveKind::SendRecv:
      return traffic(kind, groups);
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllReduce:
      return traffic(kind, groups) / within;
  }
  return 1;
}

// Identifies a curve.
struct CurveName {
  std::int64_t ranks = 0;
  Supplier by = Supplier::Any;
};

// Samples of one kind and level, by bytes. A smaller sample never takes longer than a larger one: a
// user would not accept what a library loses there.
std::vector<CollectiveSample> curve_of(const Machine& machine, CollectiveKind kind,
                                       const std::string& level, const CurveName& name) {
  std::vector<CollectiveSample> curve;
  for (const CollectiveSample& sample : machine.collectives) {
    if (sample.kind == kind && sample.level == level && sample.ranks == name.ranks &&
        sample.by == name.by) {
      curve.push_back(sample);
    }
  }
  std::ranges::sort(curve, {}, &CollectiveSample::bytes);
  for (std::size_t i = curve.size(); i-- > 1;) {
    curve[i - 1].time = std::min(curve[i - 1].time, curve[i].time);
  }
  return curve;
}

// The curve of the sampled number of ranks nearest to `ranks`, the smaller of two equally near
// ones. For that number, the supplier's own curve comes before that of any supplier.
std::optional<CurveName> nearest_curve(const Machine& machine, CollectiveKind kind,
                                       const std::string& level, std::int64_t ranks, Supplier by) {
  std::optional<CurveName> best;
  const auto order = [&](const CurveName& one) {
    return std::tuple(std::abs(one.ranks - ranks), one.ranks, one.by == by ? 0 : 1);
  };
  for (const CollectiveSample& sample : machine.collectives) {
    if (sample.kind != kind || sample.level != level || sample.ranks < 2) continue;
    if (sample.by != by && sample.by != Supplier::Any) continue;
    const CurveName found{.ranks = sample.ranks, .by = sample.by};
    if (!best || order(found) < order(*best)) best = found;
  }
  return best;
}

// Linear interpolation. Below the first sample: its time. Above the last: the slope of the last
// two.
double seconds_at(const std::vector<CollectiveSample>& curve, double bytes) {
  if (bytes <= curve.front().bytes) return curve.front().time.seconds();
  if (curve.size() == 1) return curve.front().time.seconds() * bytes / curve.front().bytes;
  std::size_t upper = 1;
  while (upper + 1 < curve.size() && curve[upper].bytes < bytes) ++upper;
  const CollectiveSample& from = curve[upper - 1];
  const CollectiveSample& to = curve[upper];
  const double slope = (to.time - from.time).seconds() / (to.bytes - from.bytes);
  return from.time.seconds() + slope * (bytes - from.bytes);
}

// start + the busiest of the ports on the path, all at the rate of the library's kernels.
double seconds_of_ports(const Machine& machine, CollectiveKind kind, int level, std::int64_t ranks,
                        std::int64_t groups, double bytes) {
  const auto rate_at = [&](int at) {
    const TransportRate* const nccl = find_transport(machine, "nccl", at);
    return nccl != nullptr ? nccl->bandwidth
                           : machine.levels[static_cast<std::size_t>(at)].bandwidth;
  };
  const MachineLevel& line = machine.levels[static_cast<std::size_t>(level)];
  const TransportRate* const nccl = find_transport(machine, "nccl", level);
  const Picoseconds start = nccl != nullptr ? nccl->start : line.latency;
  double seconds = crossing(kind, ranks, groups) * bytes / rate_at(level);
  if (line.kind == LevelKind::Bus) seconds *= static_cast<double>(groups);
  if (level > 0 && groups < ranks) {
    seconds = std::max(seconds, traffic(kind, ranks) * bytes / rate_at(level - 1));
  }
  return start.seconds() + static_cast<double>(groups - 1) * line.latency.seconds() + seconds;
}

// A sample's position on its axis, and its time in seconds.
struct Knot {
  double at = 0;
  double seconds = 0;
};

// Linear interpolation between knots in order. Before the first knot: its value. Beyond the last:
// its value, or extrapolation from the last two if `goes_on`.
double on_lines(const std::vector<Knot>& knots, double at, bool goes_on) {
  if (knots.size() == 1 || at <= knots.front().at) return knots.front().seconds;
  std::size_t next = 1;
  while (next + 1 < knots.size() && knots[next].at < at) ++next;
  const Knot& left = knots[next - 1];
  const Knot& right = knots[next];
  if (at > right.at && !goes_on) return right.seconds;
  return left.seconds + (right.seconds - left.seconds) * (at - left.at) / (right.at - left.at);
}

}  // namespace

int level_between(const Machine& machine, std::int64_t first, std::int64_t second) {
  HP_CHECK(first != second, "a processor meets itself at no level");
  HP_CHECK(std::min(first, second) >= 0 && std::max(first, second) < machine.processors(),
           "processor " + std::to_string(std::max(first, second)) + " is not on the machine");
  std::int64_t within = 1;
  for (std::size_t level = 0; level < machine.levels.size(); ++level) {
    within *= machine.levels[level].size;
    if (first / within == second / within) return static_cast<int>(level);
  }
  HP_CHECK(false, "processors that meet at no level");
  return 0;
}

int level_of_group(const Machine& machine, std::int64_t first, std::int64_t stride,
                   std::int64_t count) {
  if (count <= 1 || stride == 0) return 0;
  // Every group of processors is contiguous, so the two ends determine the level.
  return level_between(machine, first, first + (count - 1) * stride);
}

const TransportRate* find_transport(const Machine& machine, std::string_view via, int level) {
  if (level < 0 || level >= static_cast<int>(machine.levels.size())) return nullptr;
  const std::string& name = machine.levels[static_cast<std::size_t>(level)].name;
  for (const TransportRate& transport : machine.transports) {
    if (transport.via == via && transport.level == name) return &transport;
  }
  return nullptr;
}

Picoseconds converted_store_delay(const Machine& machine, int level) {
  const LevelKind kind = machine.levels[static_cast<std::size_t>(level)].kind;
  const bool was_measured = machine.processor.sms > 1 && kind == LevelKind::Switch;
  return was_measured ? from_microseconds(5) : Picoseconds{};
}

std::optional<Supplier> collective_samples_of(const Machine& machine, CollectiveKind kind,
                                              int level, std::int64_t ranks, Supplier by) {
  const std::string& name = machine.levels[static_cast<std::size_t>(level)].name;
  const std::optional<CurveName> found = nearest_curve(machine, kind, name, ranks, by);
  if (!found) return std::nullopt;
  return found->by;
}

Picoseconds collective_time(const Machine& machine, CollectiveKind kind, int level,
                            std::int64_t ranks, double bytes, std::int64_t groups, Supplier by) {
  HP_CHECK(level >= 0 && level < static_cast<int>(machine.levels.size()),
           "a collective at level " + std::to_string(level));
  if (ranks < 2) return Picoseconds(1);
  if (groups == 0) {
    // As many groups as the level joins, at most one per member: full groups if there are many
    // members.
    const std::int64_t inner = level == 0 ? 1 : group_size(machine, level - 1);
    groups = ranks > inner ? std::max<std::int64_t>(2, (ranks + inner - 1) / inner) : ranks;
  }
  const MachineLevel& line = machine.levels[static_cast<std::size_t>(level)];
  const std::optional<CurveName> sampled = nearest_curve(machine, kind, line.name, ranks, by);
  double seconds = 0;
  if (!sampled) {
    seconds = seconds_of_ports(machine, kind, level, ranks, groups, bytes);
  } else {
    // The samples' time at equal port load; each further member adds one hop.
    const double equal = bytes * traffic(kind, ranks) / traffic(kind, sampled->ranks);
    const std::int64_t more = std::max<std::int64_t>(0, ranks - sampled->ranks);
    seconds = seconds_at(curve_of(machine, kind, line.name, *sampled), equal) +
              static_cast<double>(more) * line.latency.seconds();
  }
  return std::max(Picoseconds(1), from_seconds(seconds));
}

Picoseconds completion_time(const Machine& machine, int level, std::int64_t groups,
                            std::int64_t outstanding, Picoseconds alone) {
  const std::string& name = machine.levels[static_cast<std::size_t>(level)].name;
  std::map<std::int64_t, std::map<std::int64_t, double>> samples;  // by groups, by outstanding
  for (const CompletionSample& sample : machine.completions) {
    if (sample.level != name) continue;
    samples[sample.groups][sample.outstanding] =
        sample.time.seconds() + sample.behind * alone.seconds();
  }
  if (samples.empty()) return {};
  const auto place = [](std::int64_t count) {
    return std::log(static_cast<double>(std::max<std::int64_t>(1, count)));
  };
  std::vector<Knot> by_groups;
  for (const auto& [count, times] : samples) {
    std::vector<Knot> by_load;
    for (const auto& [load, seconds] : times) by_load.push_back({place(load), seconds});
    by_groups.push_back({static_cast<double>(count), on_lines(by_load, place(outstanding), false)});
  }
  return from_seconds(std::max(0.0, on_lines(by_groups, static_cast<double>(groups), true)));
}

Picoseconds nic_drain_time(const Machine& machine, int level, std::int64_t groups) {
  const MachineLevel& line = machine.levels[static_cast<std::size_t>(level)];
  if (line.nic_drain.value == 0) return {};
  std::map<std::int64_t, double> samples;  // by groups
  for (const CompletionSample& sample : machine.completions) {
    if (sample.level != line.name) continue;
    double& most = samples[sample.groups];
    most = std::max(most, sample.nic_drain.seconds());
  }
  if (samples.empty()) return line.nic_drain;
  std::vector<Knot> knots;
  knots.reserve(samples.size());
  for (const auto& [count, seconds] : samples) {
    knots.push_back({static_cast<double>(count), seconds});
  }
  const double more = on_lines(knots, static_cast<double>(groups), true);
  return line.nic_drain + from_seconds(std::max(0.0, more));
}

}  // namespace harpe
