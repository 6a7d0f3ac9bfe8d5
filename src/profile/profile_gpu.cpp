#include "profile/profile_gpu.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "leaves/leaf.h"
#include "profile/profile_fit.h"
#include "profile/profile_host.h"
#include "run/gpus.h"
#include "support/check.h"
#include "support/date.h"

namespace harpe {
namespace {

using cuda::profile::GpuFigures;
using cuda::profile::LeafFigure;
using cuda::profile::LinkFigures;

constexpr std::string_view kGpuLevel = "nvlink";
constexpr std::string_view kLike = "h200x8";  // for figures that are not measured

// "NVIDIA H200" -> "h200".
std::string short_name(std::string_view gpu) {
  constexpr std::string_view kMaker = "NVIDIA ";
  if (gpu.starts_with(kMaker)) gpu.remove_prefix(kMaker.size());
  std::string name;
  for (const char letter : gpu.substr(0, gpu.find(' '))) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0) name += static_cast<char>(std::tolower(byte));
  }
  return name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0 ? "gpu" + name
                                                                                     : name;
}

bool is_pointwise(const LeafFigure& leaf) { return leaf.flops == 0; }

const LeafFigure& longest(const GpuFigures& figures, Leaf leaf) {
  const LeafFigure* found = nullptr;
  for (const LeafFigure& one : figures.leaves) {
    if (is_leaf(one.leaf, leaf) && (found == nullptr || one.bytes > found->bytes)) found = &one;
  }
  HP_CHECK(found != nullptr, "`" + std::string(print(leaf)) + "` was measured");
  return *found;
}

double shortest_seconds(const GpuFigures& figures, Leaf leaf) {
  double least = HUGE_VAL;
  for (const LeafFigure& one : figures.leaves) {
    if (is_leaf(one.leaf, leaf)) least = std::min(least, one.seconds);
  }
  return least;
}

double streamed(const GpuFigures& figures, Leaf leaf) {
  const LeafFigure& one = longest(figures, leaf);
  return one.bytes / one.seconds;
}

// The machine whose figures replace those that are not measured here.
Machine shipped_machine() {
  Checked<Machine> like =
      parse_machine(find_machine_preset(kLike)->text, std::string(kLike) + ".machine");
  HP_CHECK(like.ok(), "the shipped machine reads");
  return std::move(like).value();
}

Processor processor_of(const GpuFigures& figures, const Provenance& from) {
  constexpr double kUsable = 0.95;
  constexpr double kMebibyte = 1024 * 1024;
  Processor processor;
  processor.name = short_name(figures.gpu);
  processor.sms = figures.starts.multiprocessors;
  processor.memory_bytes =
      kMebibyte * std::floor(kUsable * figures.starts.memory_bytes / kMebibyte);
  processor.cache_bytes = figures.starts.cache_bytes;
  processor.kernel_start = rounded_time(figures.starts.kernel);
  processor.kernel_issue = rounded_time(figures.starts.issue);
  processor.event = from_seconds(rounded(figures.starts.event));
  // At least what any sample reached, so that the bound holds.
  double bandwidth = streamed(figures, Leaf::Add);
  const auto hold = [&](const std::vector<LeafFigure>& leaves) {
    for (const LeafFigure& one : leaves) {
      if (!is_pointwise(one)) bandwidth = std::max(bandwidth, 1.002 * one.bytes / one.seconds);
    }
  };
  hold(figures.leaves);
  if (figures.libraries) hold(figures.libraries->products);
  processor.memory_bandwidth = rounded_in(kGiga, bandwidth);
  processor.execution_start = shipped_machine().processor.execution_start;
  processor.from = {from.origin, from.note + "; execution_start as " + std::string(kLike)};
  return processor;
}

CopyRate fit(const std::vector<cuda::profile::TimedBytes>& times) {
  std::vector<std::pair<double, double>> points;
  points.reserve(times.size());
  for (const auto& one : times) points.emplace_back(one.bytes, one.seconds);
  return fit_line(points);
}

// The fewest blocks, one per SM, that reach 95 % of the largest copy bandwidth.
std::int64_t sms_of_copies(const LinkFigures& links, std::int64_t sms) {
  constexpr double kNearly = 0.95;
  double most = 0;
  for (const auto& one : links.push_blocks) most = std::max(most, one.bandwidth);
  std::int64_t fewest = sms;
  for (const auto& one : links.push_blocks) {
    if (one.bandwidth >= kNearly * most) fewest = std::min(fewest, one.blocks);
  }
  return fewest;
}

void add_links(Machine& machine, const GpuFigures& figures, const Provenance& from) {
  const LinkFigures& links = *figures.links;
  const std::int64_t sms = sms_of_copies(links, machine.processor.sms);
  const auto add = [&](std::string_view via, const CopyRate& rate, std::int64_t held,
                       const Provenance& why) {
    machine.transports.push_back({.via = std::string(via),
                                  .level = std::string(kGpuLevel),
                                  .start = rounded_time(rate.start),
                                  .bandwidth = rounded_in(kGiga, rate.bandwidth),
                                  .sms = held,
                                  .from = why});
  };
  const CopyRate push = fit(links.push_ring);
  add("ce", fit(links.engine_ring), 0, from);
  add("sm", push, sms, from);
  add("tma", push, sms, {Origin::Assumed, "as sm"});
  add("nccl", fit(links.pull_ring), sms, from);
  machine.transports.back().unrounded = 1;  // collectives are pulls (docs/gpu.md)
  MachineLevel& level = machine.levels.emplace_back();
  level.name = kGpuLevel;
  level.size = figures.gpus;
  level.latency = rounded_time(figures.starts.signal.value_or(0));
  level.from = from;
  // A port has at least the bandwidth that any copy reached.
  for (const TransportRate& one : machine.transports) {
    level.bandwidth = std::max(level.bandwidth, one.bandwidth);
  }
  for (const double rate : {fit(links.engine_pair).bandwidth, links.engine_pull,
                            links.engine_all_to_all, links.engine_incast}) {
    level.bandwidth = std::max(level.bandwidth, rounded_in(kGiga, rate));
  }
}

// A collective's time excludes its launch.
void add_collectives(Machine& machine, const GpuFigures& figures,
                     const std::vector<cuda::profile::TimedCollective>& collectives, Supplier by,
                     const Provenance& from) {
  for (const auto& one : collectives) {
    machine.collectives.push_back({.kind = kind_of(one.pattern),
                                   .level = std::string(kGpuLevel),
                                   .by = by,
                                   .ranks = figures.gpus,
                                   .bytes = one.bytes,
                                   .time = rounded_time(one.seconds - figures.starts.kernel),
                                   .from = from});
  }
}

// For one GPU: the links that plans of several ranks would need.
void assume_links(Machine& machine) {
  const Machine like = shipped_machine();
  const Provenance from{Origin::Assumed,
                        "as " + std::string(kLike) + ": one GPU has no links to measure"};
  machine.levels = {like.levels.front()};
  machine.levels.front().size = 1;
  machine.levels.front().from = from;
  for (TransportRate transport : like.transports) {
    if (transport.level != machine.levels.front().name) continue;
    transport.from = from;
    machine.transports.push_back(std::move(transport));
  }
}

void add_samples(Machine& machine, const std::vector<LeafFigure>& leaves, Supplier by,
                 const Provenance& from) {
  for (const LeafFigure& one : leaves) {
    if (is_pointwise(one)) continue;
    machine.samples.push_back({.leaf = one.leaf,
                               .dtype = one.dtype,
                               .shape = {.batch = one.batch,
                                         .rows = one.rows,
                                         .columns = one.columns,
                                         .depth = one.depth,
                                         .flops = one.flops,
                                         .bytes = one.bytes},
                               .causal = one.causal,
                               .by = by,
                               .time = rounded_time(one.seconds),
                               .from = from});
  }
}

RateGrid grid_of(std::string_view leaf) {
  // Attention kernels divide keys among blocks if there are few query tiles.
  if (!is_leaf(leaf, Leaf::Matmul)) {
    return {.tile_rows = {16, 64, 128}, .tile_columns = {0}, .half_depths = {0, 16, 32, 64, 128}};
  }
  return {.tile_rows = {64, 128, 256},
          .tile_columns = {64, 128, 256},
          .half_depths = {0, 32, 64, 128, 256, 512},
          .starts = {0.5, 1, 2, 4, 8}};
}

double gpu_share_of(const Machine& machine, double bandwidth) {
  return std::min(1.0, rounded(bandwidth / machine.processor.memory_bandwidth));
}

// A line for every leaf and type with samples; f16 as bf16, other types as the slowest.
void add_gpu_rates(Machine& machine, double memory_share) {
  std::set<std::pair<std::string, std::string>> known;
  std::set<std::string> leaves;
  for (const LeafSample& sample : machine.samples) {
    if (!known.emplace(sample.leaf, sample.dtype).second) continue;
    leaves.insert(sample.leaf);
    machine.rates.push_back(fit_rate(machine, sample, grid_of(sample.leaf), memory_share));
    if (sample.dtype != "bf16") continue;
    // Thread blocks of the tensor-core kernels hold this many rows, whatever tiles fit best.
    constexpr double kHeldRows = 128;
    machine.rates.back().held_rows = kHeldRows;
    LeafRate half = machine.rates.back();
    half.dtype = "f16";
    half.from = {Origin::Assumed, "as bf16"};
    machine.rates.push_back(half);
  }
  for (const std::string& leaf : leaves) {
    machine.rates.push_back(stand_in(machine, leaf, "as the slower of f32 and bf16"));
  }
}

void add_memory_rates(Machine& machine, const GpuFigures& figures, const Provenance& from) {
  const auto add = [&](std::string_view leaf, Leaf like) {
    LeafRate rate;
    rate.leaf = leaf;
    rate.dtype = "*";
    rate.memory_share = gpu_share_of(machine, streamed(figures, like));
    rate.start = rounded_time(shortest_seconds(figures, like));
    rate.from = from;
    machine.rates.push_back(rate);
  };
  for (const Leaf leaf : {Leaf::SiluMul, Leaf::Silu, Leaf::Gelu}) add(print(leaf), Leaf::SiluMul);
  add(print(Leaf::RowDot), Leaf::RowDot);
  add("*", Leaf::Add);
  LeafRate rows;
  rows.dtype = "*";
  rows.memory_share = 0.6;
  rows.start = from_microseconds(2);
  rows.from = {Origin::Assumed, "rows in random order"};
  for (const Leaf leaf : {Leaf::GatherRows, Leaf::CombineRows}) {
    rows.leaf = print(leaf);
    machine.rates.push_back(rows);
  }
}

}  // namespace

CollectiveKind kind_of(cuda::profile::Pattern pattern) {
  switch (pattern) {
    case cuda::profile::Pattern::AllGather:
      return CollectiveKind::AllGather;
    case cuda::profile::Pattern::AllToAll:
      return CollectiveKind::AllToAll;
    case cuda::profile::Pattern::ReduceScatter:
      return CollectiveKind::ReduceScatter;
    case cuda::profile::Pattern::AllReduce:
      return CollectiveKind::AllReduce;
  }
  return CollectiveKind::AllGather;
}

Machine machine_of(const GpuFigures& figures, const std::string& day) {
  const std::string gpus = figures.gpu + " x " + std::to_string(figures.gpus);
  const Provenance from{Origin::Measured, gpus + ", " + day};
  Machine machine;
  machine.name = short_name(figures.gpu) + "x" + std::to_string(figures.gpus) + "_measured";
  machine.summary = gpus + ", measured on " + day;
  machine.processor = processor_of(figures, from);
  if (figures.links) {
    add_links(machine, figures, from);
    add_collectives(machine, figures, figures.links->collectives, Supplier::Own, from);
  } else {
    assume_links(machine);
  }
  add_samples(machine, figures.leaves, Supplier::Own, from);
  if (figures.libraries) {
    const Provenance of_libraries{Origin::Measured, from.note + ", " + figures.libraries->versions};
    add_collectives(machine, figures, figures.libraries->collectives, Supplier::Library,
                    of_libraries);
    add_samples(machine, figures.libraries->products, Supplier::Library, of_libraries);
  }
  add_gpu_rates(machine, gpu_share_of(machine, streamed(figures, Leaf::Add)));
  add_memory_rates(machine, figures, from);
  const Checked<Ok> checked = check_machine(machine);
  HP_CHECK(checked.ok(), "the measured machine: " + render(checked.error()));
  return machine;
}

Checked<GpuProfile> profile_gpus(const GpuProfileRequest& request) {
  HP_TRY(const Gpus* const gpus, find_gpus());
  GpuProfile profile;
  HP_TRY(profile.figures, gpus->measure(request));
  profile.machine = machine_of(profile.figures, today());
  return profile;
}

}  // namespace harpe
