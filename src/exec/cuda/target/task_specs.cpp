#include "exec/cuda/target/task_specs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "exec/cuda/kernels/nccl/nccl_launch.h"
#include "exec/cuda/target/puts.h"
#include "sync/nodes.h"

namespace harpe::cuda {
namespace {

// Enough to fold whole regions: a launch costs more than a pass over memory.
constexpr std::int64_t kScratchElements = std::int64_t{1} << 30;

// For a collective that only moves data: each member starts with its successor's part, so that all
// ports are busy and no port serves all members at once.
void begin_behind_own(std::vector<actions::Action>& moves, const SpecSource& source, RankId rank) {
  const auto ranks = static_cast<std::int64_t>(source.bases.arenas.size());
  const auto find_distance = [&](const actions::Action& action) {
    const auto* const move = std::get_if<actions::Assign>(&action);
    const std::byte* const from = move == nullptr ? nullptr : move->from.data;
    std::int64_t giver = rank.value;
    for (std::int64_t peer = 0; peer < ranks; ++peer) {
      const std::byte* const begin = source.bases.arenas[static_cast<std::size_t>(peer)];
      if (from >= begin && from < begin + source.numbers.offset) giver = peer;
    }
    return (giver - rank.value + ranks) % ranks;
  };
  std::vector<std::pair<std::int64_t, std::size_t>> order;  // distances, and indices of moves
  for (const actions::Action& move : moves) order.emplace_back(find_distance(move), order.size());
  std::ranges::sort(order);
  std::vector<actions::Action> sorted;
  sorted.reserve(moves.size());
  for (const auto& [distance, at] : order) sorted.push_back(std::move(moves[at]));
  moves = std::move(sorted);
}

// Appends the launches of actions.
Checked<Ok> add_all(const SpecSource& source, const LaunchChoice& choice,
                    std::vector<actions::Action> actions, TaskSpecs& specs) {
  for (actions::Action& action : actions) {
    source.narrow.read(action);
    HP_TRY(LaunchSpecs launches, plan_launches(choice, action));
    std::ranges::move(launches, std::back_inserter(specs.launches));
  }
  std::ranges::move(actions, std::back_inserter(specs.actions));
  return Ok{};
}

// Whether a copy engine makes the task. Copy engines do not read another GPU's memory: such a copy
// can stand in that GPU's queue, behind work that waits for it (decision 0027). Within a GPU a
// kernel starts sooner.
bool is_for_engine(const Plan& plan, const Task& task) {
  if (task.kind != TaskKind::Copy) return false;
  if (task.via == Via::Proxy) return true;
  if (task.via != Via::Ce && task.via != Via::Tma) return false;
  const auto is_own = [&](const Ref& ref) {
    return plan.allocs[ref.alloc.index()].rank == plan.queues[task.queue.index()].rank;
  };
  return std::ranges::all_of(task.reads, is_own) && !std::ranges::all_of(task.writes, is_own);
}

LaunchChoice choice_of(const SpecSource& source, const Task& task) {
  return {.nest = task.nest,
          .buffer = task.writes.empty()
                        ? ""
                        : source.plan.allocs[task.writes.front().alloc.index()].buffer,
          .kernel = task.leaf_kernel,
          .by_copy_engine = is_for_engine(source.plan, task),
          .multiprocessors = source.multiprocessors};
}

// Scratch memory of one task, contiguous pieces.
class TaskScratch {
 public:
  explicit TaskScratch(std::byte* base) : base_(base) {}

  std::byte* reserve(std::int64_t bytes) {
    constexpr std::int64_t kAlign = 512;
    std::byte* const piece = base_ + bytes_;
    bytes_ += (bytes + kAlign - 1) / kAlign * kAlign;
    return piece;
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* base_;
  std::int64_t bytes_ = 0;
};

// Appends a task's launches on the rank.
Checked<Ok> add_specs(const SpecSource& source, const Task& task, RankId rank, TaskScratch& space,
                      TaskSpecs& specs) {
  const actions::Scratch scratch{
      .reserve = [&](std::int64_t bytes) { return space.reserve(bytes); },
      .elements = kScratchElements};
  HP_TRY(actions::TaskWork work, actions::prepare_task(source.setting(scratch), task));
  if (task.kind == TaskKind::Collective && task.collective != CollectiveOp::ReduceScatter) {
    begin_behind_own(work.actions, source, rank);
  }
  return add_all(source, choice_of(source, task), std::move(work.actions), specs);
}

// The rank's part of a collective that NCCL runs.
Checked<TaskSpecs> specs_of(const SpecSource& source, const Traffic& traffic, RankId rank,
                            TaskScratch& scratch) {
  const Team& team = source.collectives.teams[traffic.team];
  const auto member = static_cast<std::size_t>(std::ranges::find(team, rank) - team.begin());
  const auto sum = traffic.sums.find(rank);
  TaskSpecs specs;
  if (sum != traffic.sums.end()) {
    for (const Task& round : sum->second.rounds) {
      HP_REQUIRE_OK(add_specs(source, round, rank, scratch, specs));
    }
  }
  const auto arena = reinterpret_cast<DeviceAddress>(source.bases.arenas[rank.index()]);
  specs.launches.emplace_back(
      call_of(traffic, source.communicator(traffic.team, rank), member, arena));
  if (sum != traffic.sums.end()) {
    HP_REQUIRE_OK(add_specs(source, sum->second.fold, rank, scratch, specs));
  }
  specs.actions.clear();  // no pass joins it with other tasks
  return specs;
}

}  // namespace

Checked<TaskSpecs> specs_of(const SpecSource& source, TaskId id, std::byte* scratch_memory) {
  const Task& task = source.plan.tasks[id.index()];
  const auto rank = source.plan.queues[task.queue.index()].rank;
  TaskScratch scratch(scratch_memory);
  const auto traffic = source.collectives.by_nccl.find(task.group);
  if (traffic != source.collectives.by_nccl.end()) {
    HP_TRY(TaskSpecs specs, specs_of(source, traffic->second, rank, scratch));
    specs.scratch = scratch.bytes();
    return specs;
  }
  TaskSpecs specs;
  if (sync::goes_out(source.plan, id)) {
    HP_REQUIRE_OK(add_all(source, choice_of(source, task), packing_of(source, id), specs));
  } else {
    HP_REQUIRE_OK(add_specs(source, task, rank, scratch, specs));
  }
  specs.scratch = scratch.bytes();
  if (task.kind == TaskKind::Compute) source.narrow.leave(specs.launches);
  return specs;
}

Checked<TaskSpecs> specs_of(const SpecSource& source, const Task& step, RankId rank,
                            std::byte* scratch_memory) {
  TaskSpecs specs;
  TaskScratch scratch(scratch_memory);
  HP_REQUIRE_OK(add_specs(source, step, rank, scratch, specs));
  specs.scratch = scratch.bytes();
  return specs;
}

Checked<TaskSpecs> landing_specs_of(const SpecSource& source, TaskId put) {
  TaskSpecs specs;
  const LaunchChoice choice = choice_of(source, source.plan.tasks[put.index()]);
  HP_REQUIRE_OK(add_all(source, choice, landing_of(source, put), specs));
  return specs;
}

Numbers numbers_of(const Plan& plan, const Blocks& blocks) {
  constexpr std::int64_t kAlign = 512;
  return {.offset = (arena_bytes(plan) + kAlign - 1) / kAlign * kAlign,
          .bytes = actions::Occupancy::bytes_per_rank(plan, blocks)};
}

}  // namespace harpe::cuda
