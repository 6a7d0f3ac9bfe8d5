#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profile/profile_fit.h"
#include "profile/profile_host.h"
#include "profile/profile_transport.h"
#include "support/date.h"
#include "support/print_bytes.h"

namespace harpe {
namespace {

using transport::Ordering;

constexpr std::string_view kFabricLevel = "fabric";
// Bursts within this ratio count as equal: separate runs on a busy machine differ as much.
constexpr double kAlike = 1.10;
// Policies in order of how long they delay a signal, shortest first.
constexpr Fence kByHold[] = {Fence::NicOrdered,     Fence::Immediate, Fence::Batched,
                             Fence::PerDestination, Fence::OneQuiet,  Fence::PerPut};

const PolicyFigures* find_policy(const TransportFigures& figures, Fence policy) {
  const auto found = std::ranges::find(figures.policies, policy, &PolicyFigures::policy);
  return found == figures.policies.end() || found->refusal ? nullptr : &*found;
}

const PolicyFigures& fastest_of(const TransportFigures& figures) {
  const PolicyFigures* best = nullptr;
  for (const PolicyFigures& one : figures.policies) {
    if (!one.refusal && (best == nullptr || one.both < best->both)) best = &one;
  }
  return *best;
}

const PolicyFigures& choose_policy(const TransportFigures& figures) {
  const PolicyFigures& fastest = fastest_of(figures);
  for (const Fence policy : kByHold) {
    const PolicyFigures* const one = find_policy(figures, policy);
    if (one != nullptr && one->both <= kAlike * fastest.both) return *one;
  }
  return fastest;
}

std::string in_ms(double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); }

CopyRate rate_of(const TransportFigures& figures) {
  const CopyRate fit = fit_line(figures.sizes);
  if (std::isfinite(fit.bandwidth) && fit.bandwidth > 0) return fit;
  const auto& [bytes, seconds] = figures.sizes.back();  // too noisy for a line
  return {.start = 0, .bandwidth = bytes / seconds};
}

Picoseconds time_of(double seconds) { return seconds <= 0 ? Picoseconds() : rounded_time(seconds); }

// How long a signal ordered behind its put waits on the wire, together with later puts to its rank.
double gap_of(const TransportFigures& figures) {
  if (figures.given.in_order) return 0;
  const PolicyFigures* const nic = find_policy(figures, Fence::NicOrdered);
  if (nic == nullptr) return figures.quiet;  // only a round trip orders it
  return nic->both / kBurstPuts - figures.post - figures.signal;
}

MachineLevel level_of(const TransportFigures& figures, std::int64_t nodes, const Provenance& from) {
  MachineLevel level;
  level.name = kFabricLevel;
  level.kind = LevelKind::Switch;
  level.size = nodes;
  level.bandwidth = rounded_in(kGiga, rate_of(figures).bandwidth);
  level.latency = time_of(figures.flag);
  level.proxy_post = time_of(std::max(figures.post, 1e-9));
  level.proxy_word = time_of(figures.signal);
  level.nic_fence = time_of(gap_of(figures));
  if (const PolicyFigures* const imm = find_policy(figures, Fence::Immediate)) {
    level.proxy_count = time_of(imm->both / (kBurstPuts * (figures.ranks - 1)));
  }
  level.from = from;
  return level;
}

// The flight time of a put, and the time of a quiet beyond it, as remainders of total times.
void add_ways(Machine& machine, const TransportFigures& figures, const Provenance& from) {
  const double bandwidth = rate_of(figures).bandwidth;
  const double wire = static_cast<double>(kBurstBytes) / bandwidth;
  const double start = std::max(0.0, figures.one_way - figures.flag - figures.post - wire);
  const double rounded_bandwidth = rounded_in(kGiga, bandwidth);
  machine.transports.push_back({.via = "proxy",
                                .level = std::string(kFabricLevel),
                                .start = time_of(start),
                                .bandwidth = rounded_bandwidth,
                                .sms = 0,
                                .from = from});
  machine.transports.push_back({.via = "nccl",
                                .level = std::string(kFabricLevel),
                                .start = time_of(start + 2 * figures.flag),
                                .bandwidth = rounded_bandwidth,
                                .sms = 0,
                                .from = {Origin::Assumed, "as puts, and two words more"}});
  const double each = std::max(figures.post, wire);
  const auto add = [&](std::int64_t outstanding, double whole) {
    const double beyond = whole - static_cast<double>(outstanding) * each - start;
    machine.completions.push_back({.level = std::string(kFabricLevel),
                                   .groups = figures.ranks,
                                   .outstanding = outstanding,
                                   .time = time_of(beyond),
                                   .behind = 0,
                                   .from = from});
  };
  add(1, figures.quiet);
  add(kOutstanding, figures.quiet_of_many);
}

// The processors of one node, without the network between nodes.
Machine one_node_of(Machine base) {
  const std::string inner = base.levels.front().name;
  const auto is_outer = [&](const auto& line) { return line.level != inner; };
  base.levels.resize(1);
  std::erase_if(base.transports, is_outer);
  std::erase_if(base.completions, is_outer);
  std::erase_if(base.collectives, is_outer);
  return base;
}

}  // namespace

Recommendation recommend(const TransportFigures& figures) {
  const PolicyFigures& chosen = choose_policy(figures);
  std::string reason = fmt::format(
      "{} puts of {} with a word each take {}, {:.0f} % of the speed of puts alone, ordered by {}",
      kBurstPuts, print_bytes(kBurstBytes), in_ms(chosen.both), 100 * chosen.puts / chosen.both,
      print(chosen.ordering));
  reason += chosen.quiets > 0 ? fmt::format(" with {:.0f} drains", chosen.quiets) : ", no drain";
  const PolicyFigures* const tile = find_policy(figures, Fence::PerPut);
  if (tile != nullptr && chosen.policy != Fence::PerPut) {
    reason += fmt::format("; `put`, a drain for each, {} ({:.1f} times)", in_ms(tile->both),
                          tile->both / chosen.both);
  }
  const PolicyFigures& fastest = fastest_of(figures);
  if (fastest.policy != chosen.policy) {
    reason += fmt::format("; `{}` takes {}, which is alike, and holds words back longer",
                          print(fastest.policy), in_ms(fastest.both));
  }
  return {.policy = chosen.policy, .reason = std::move(reason)};
}

Checked<Machine> machine_of(const TransportFigures& figures, const Machine& base,
                            std::int64_t nodes, const std::string& where) {
  const Provenance from{Origin::Measured, fmt::format("{}, {} processes, {}, {}", figures.provider,
                                                      figures.ranks, where, today())};
  Machine machine = one_node_of(base);
  machine.name = "profiled";
  machine.summary =
      fmt::format("{} nodes as one of `{}`, joined by {}", nodes, base.name, figures.provider);
  machine.levels.push_back(level_of(figures, nodes, from));
  add_ways(machine, figures, from);
  HP_REQUIRE_OK(check_machine(machine));
  return machine;
}

}  // namespace harpe
