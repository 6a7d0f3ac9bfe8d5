#include "profile/profile.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "leaves/leaf.h"
#include "profile/profile_fit.h"
#include "profile/profile_host.h"
#include "profile/profile_leaves.h"
#include "run/host.h"
#include "run/memory.h"
#include "support/check.h"
#include "support/date.h"

namespace harpe {
namespace {

constexpr std::string_view kHostLevel = "host";

struct MeasuredLeafTime {
  ProfileLeaf leaf;
  double seconds = 0;
};

std::vector<MeasuredLeafTime> measure_leaves(const ProfileCrew& crew,
                                             const ProfileOptions& options) {
  std::vector<MeasuredLeafTime> out;
  std::string shown;
  for (ProfileLeaf& leaf : profile_leaves(options.quick)) {
    const std::string stage = leaf.leaf + " in " + std::string(print(leaf.dtype));
    if (stage != shown && options.progress) options.progress("measuring " + stage);
    shown = stage;
    const double seconds = crew.seconds_per_call(leaf.make);
    out.push_back({std::move(leaf), rounded_time(seconds).seconds()});
  }
  return out;
}

bool is_pointwise(const MeasuredLeafTime& measured) { return measured.leaf.shape.flops == 0; }

// Bytes per second of the longest pointwise leaf of this name.
double streamed(const std::vector<MeasuredLeafTime>& measured, Leaf leaf) {
  double longest = 0;
  double rate = 0;
  for (const MeasuredLeafTime& one : measured) {
    if (!is_leaf(one.leaf.leaf, leaf) || one.seconds <= longest) continue;
    longest = one.seconds;
    rate = one.leaf.shape.bytes / one.seconds;
  }
  return rate;
}

double share_of(const Machine& machine, double bandwidth) {
  return std::min(1.0, rounded(bandwidth / machine.processor.memory_bandwidth));
}

void add_sample(Machine& machine, const MeasuredLeafTime& measured, const Provenance& from) {
  machine.samples.push_back({.leaf = measured.leaf.leaf,
                             .dtype = std::string(print(measured.leaf.dtype)),
                             .shape = measured.leaf.shape,
                             .causal = measured.leaf.causal,
                             .time = from_seconds(measured.seconds),
                             .from = from});
}

// A rate for every leaf and type that has samples; the slowest type's rate is used for others.
void add_rates(Machine& machine, double memory_share) {
  std::set<std::string> leaves;
  for (const LeafSample& sample : machine.samples) {
    const auto is_same = [&](const LeafRate& rate) {
      return rate.leaf == sample.leaf && rate.dtype == sample.dtype;
    };
    if (std::ranges::any_of(machine.rates, is_same)) continue;
    // In attention kernels columns are a loop, as on GPUs.
    const RateGrid grid{.tile_columns = {is_leaf(sample.leaf, Leaf::Matmul) ? 1.0 : 0.0}};
    machine.rates.push_back(fit_rate(machine, sample, grid, memory_share));
    leaves.insert(sample.leaf);
  }
  for (const std::string& leaf : leaves) {
    machine.rates.push_back(stand_in(machine, leaf, "as the slower of f32 and bf16"));
  }
}

void add_memory_rates(Machine& machine, const std::vector<MeasuredLeafTime>& measured,
                      const Provenance& from) {
  const auto rate_of = [&](std::string_view leaf, Leaf like) {
    LeafRate rate;
    rate.leaf = leaf;
    rate.dtype = "*";
    rate.memory_share = share_of(machine, streamed(measured, like));
    rate.start = from_microseconds(0.2);
    rate.from = from;
    return rate;
  };
  for (const Leaf leaf : {Leaf::SiluMul, Leaf::Silu, Leaf::Gelu}) {
    machine.rates.push_back(rate_of(print(leaf), Leaf::SiluMul));
  }
  machine.rates.push_back(rate_of("*", Leaf::Add));
}

void add_transports(Machine& machine, const CopyRate& copies, const Provenance& from) {
  // A copy is a task with its own start, like any other.
  const Picoseconds start = machine.processor.kernel_start + from_seconds(copies.start);
  for (const char* const via : {"ce", "sm", "tma", "nccl", "proxy"}) {
    machine.transports.push_back({.via = via,
                                  .level = std::string(kHostLevel),
                                  .start = start,
                                  .bandwidth = rounded_in(kGiga, copies.bandwidth),
                                  .sms = 0,
                                  .from = from});
  }
}

// The rank's share of the host, without the rates of leaves.
Processor measure_processor(const ProfileCrew& crew) {
  Processor processor;
  processor.name = "core";
  processor.kernel_start = processor.kernel_issue = rounded_time(seconds_between_tasks());
  processor.event = rounded_time(seconds_per_signal(crew.budget));
  const auto ranks = static_cast<double>(crew.ranks);
  const auto busy = static_cast<double>(std::min(crew.cores, crew.ranks));
  processor.cache_bytes = std::floor(bytes_of_cache() * busy / ranks);
  constexpr double kUsable = 0.9;
  constexpr double kMebibyte = 1024 * 1024;
  const auto free = static_cast<double>(available_bytes().value_or(std::int64_t{1} << 30));
  processor.memory_bytes =
      kMebibyte * std::max(1.0, std::floor(kUsable * free / ranks / kMebibyte));
  return processor;
}

void add_leaves(Machine& machine, const std::vector<MeasuredLeafTime>& measured,
                const Provenance& from) {
  double& bandwidth = machine.processor.memory_bandwidth;
  bandwidth = streamed(measured, Leaf::Add);
  for (const MeasuredLeafTime& one : measured) {
    if (is_pointwise(one)) continue;
    add_sample(machine, one, from);
    // At least what any leaf reached, from a cache or not, so that the bound holds.
    bandwidth = std::max(bandwidth, 1.002 * one.leaf.shape.bytes / one.seconds);
  }
  bandwidth = rounded_in(kGiga, bandwidth);
  add_rates(machine, share_of(machine, streamed(measured, Leaf::Add)));
  add_memory_rates(machine, measured, from);
}

}  // namespace

Machine profile_cpu(const ProfileOptions& options) {
  const auto say = [&](std::string_view stage) {
    if (options.progress) options.progress(stage);
  };
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  ProfileCrew crew{.ranks = options.ranks > 0 ? options.ranks : cores, .cores = cores};
  if (options.quick) crew.budget = std::chrono::milliseconds(1);
  const std::string host = describe_host();
  const std::string together = std::to_string(crew.ranks) + " ranks at once";
  const Provenance from{Origin::Measured, host + ", " + together + ", " + today()};

  Machine machine;
  machine.name = "cpu";
  machine.summary = together + " on " + host;
  say("measuring signals and tasks");
  machine.processor = measure_processor(crew);
  machine.processor.from = from;
  say("measuring copies");
  const CopyRate copies =
      profile_copies(crew, std::int64_t{1} << (options.quick || crew.ranks > 64 ? 16 : 24));
  add_transports(machine, copies, from);
  MachineLevel& level = machine.levels.emplace_back();
  level.name = kHostLevel;
  level.kind = LevelKind::Bus;
  level.size = crew.ranks;
  level.bandwidth = rounded_in(kGiga, copies.bandwidth * static_cast<double>(crew.ranks));
  level.latency = machine.processor.event;
  level.from = from;
  add_leaves(machine, measure_leaves(crew, options), from);
  const Checked<Ok> checked = check_machine(machine);
  HP_CHECK(checked.ok(), "the measured machine: " + render(checked.error()));
  return machine;
}

}  // namespace harpe
