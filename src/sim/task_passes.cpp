#include <algorithm>
#include <numeric>

#include "sim/task_costs.h"
#include "sim/variants.h"

// Memory traffic of tasks without GEMMs: sums, roundings, images.
namespace harpe {
namespace {

// Bytes a second of addends that threads read as they arrive, and add (docs/kernels.md). With
// ping-pong half of a kernel's threads do it for each tile.
double rate_by_threads(std::string_view variant) {
  constexpr double kOfStreams = 1.2e12;
  constexpr double kWithPingPong = 2.2e12;
  constexpr double kOfTiles = 3.6e12;
  const std::optional<Tiling> tiling = read_tiling(variant);
  if (!tiling) return kOfStreams;
  return tiling->tile.ping_pong ? kWithPingPong : kOfTiles;
}

}  // namespace

// The bytes that sums, roundings and images read and write, launch by launch. Each launch adds one
// source to the result of the previous launch. A total of several sources is made beside its home,
// and rounded into it once.
std::vector<double> TaskCosts::passes_of(const Task& task) const {
  double target = 0;
  for (const Ref& ref : task.writes) target += touched(task, ref);
  const std::size_t count = task.writes.empty() ? 0 : task.reads.size() / task.writes.size();
  std::vector<double> sources(std::max<std::size_t>(count, 1), 0);
  for (std::size_t i = 0; i < task.reads.size(); ++i) {
    sources[std::min(i / task.writes.size(), sources.size() - 1)] += touched(task, task.reads[i]);
  }
  const bool sums = task.kind == TaskKind::Fold || task.kind == TaskKind::Finalise;
  if (!sums) return {std::accumulate(sources.begin(), sources.end(), target)};
  double state = target;
  const bool aside = task.kind == TaskKind::Finalise && count > 1;
  if (aside) state = ideal_.no_round_trips ? 0 : *std::ranges::max_element(sources);
  std::vector<double> passes;
  const bool adds = task.writes.front().mode == WriteMode::Add;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    passes.push_back(sources[i] + (i > 0 || adds ? 2 : 1) * state);
  }
  if (aside) passes.push_back(state + target);
  return passes;
}

// The passes of a member of a sum by several kernels. Pulls add contributions one by one and round
// them as they read them. NCCL only moves data, so all that leaves is rounded before and folded
// behind. If nothing is rounded, the machine's curve already contains the passes.
std::vector<double> TaskCosts::passes_of_sum(const Task& task, Supplier by) const {
  if (task.collective != CollectiveOp::ReduceScatter || !task.wire || ideal_.no_round_trips) {
    return {};
  }
  const bool is_moved = by == Supplier::Library;
  const double state = bytes_of(task.writes.front());
  const double sent = state * static_cast<double>(size_in_bytes(*task.wire)) /
                      static_cast<double>(size_in_bytes(dtype_of(task.writes.front())));
  std::vector<double> passes;
  for (const Ref& read : task.reads) {
    const bool is_rounded = dtype_of(read) == *task.wire;
    if (rank_of(read) == rank_of(task) || (is_rounded && !is_moved)) continue;
    if (passes.empty()) passes.push_back(2 * state);  // the sum that the others are added to
    if (!is_moved || !is_rounded) passes.push_back(is_moved ? state + sent : sent);
    passes.push_back(sent + 2 * state);
  }
  return passes;
}

// Contributions that a GEMM adds to its own sums, each as a GEMM with the identity, whose depth is
// the rows of a tile.
Activity TaskCosts::added_at_home(TaskId id) const {
  const Task& finalise = plan_.tasks[id.index()];
  const std::string_view dtype = print(operand_type(finalise));
  const Ref& home = finalise.writes.front();
  const double elements = bytes_of(home) / static_cast<double>(size_in_bytes(dtype_of(home)));
  double flops = 0;
  double bytes = 0;
  for (const Ref& read : finalise.reads) {
    if (plan_.allocs[read.alloc.index()].level == Level::Acc) continue;
    flops += 2 * elements * find_rate(machine_, print(Leaf::Matmul), dtype).tile_rows;
    bytes += touched(finalise, read);
  }
  Activity activity;
  activity.work =
      std::max(Picoseconds(1), leaf_bound(machine_, print(Leaf::Matmul), dtype, flops, bytes));
  if (launches_.moves_by_threads(id)) {
    const double rate = rate_by_threads(launches_.variant(id));
    activity.work = std::max(activity.work, from_seconds(bytes / rate));
  }
  add_use(activity, find_resource(map_, ResourceKind::Sm, rank_of(finalise)),
          static_cast<double>(machine_.processor.sms));
  if (bytes > 0) {
    add_use(activity, find_resource(map_, ResourceKind::Memory, rank_of(finalise)),
            bytes / activity.work.seconds());
  }
  return activity;
}

}  // namespace harpe
