#include "sim/build.h"

#include <algorithm>
#include <map>
#include <set>

#include "plan/refs.h"
#include "sim/task_costs.h"
#include "support/check.h"

namespace harpe {
namespace {

// From a store of a kernel until a kernel of another GPU that polls sees it, 8 x H200, 2026-11-21.
constexpr Picoseconds kBetweenKernels = from_microseconds(1.27);

class Builder {
 public:
  Builder(const Plan& plan, const launch::LaunchPlan& launches, const Machine& machine,
          const SimulateOptions& options)
      : plan_(plan),
        machine_(machine),
        options_(options),
        ideal_(options.ideal),
        costs_(plan, launches, machine, built_.map = map_resources(machine, plan.mesh.ranks()),
               options.ideal) {
    const std::int64_t issues = options.launch == Launch::Host ? plan.mesh.ranks() : 0;
    built_.workload.queues =
        static_cast<std::int32_t>(plan.queues.size()) + static_cast<std::int32_t>(issues);
    built_.first_of_task.resize(plan.tasks.size(), -1);
    built_.begin_of_task.resize(plan.tasks.size(), -1);
    built_.work_of_task.resize(plan.tasks.size(), -1);
    built_.level_bytes.resize(machine.levels.size());
    for (std::size_t queue = 0; queue < plan.queues.size(); ++queue) {
      puts_.emplace_back(machine, built_.map, options_of(queue));
    }
    last_of_queue_.resize(plan.queues.size());
  }

  BuiltWorkload run() {
    learn_groups();
    learn_fences();
    for (const TaskId id : costs_.launches().order()) add_task(id);
    for (PutQueue& puts : puts_) puts.end_batches(writer_);
    for (const auto& [group, members] : groups_) join_members(members);
    for (const Sync& sync : plan_.syncs) add_sync(sync);
    for (const Barrier& barrier : plan_.barriers) add_barrier(barrier);
    built_.workload.resources = built_.map.list;
    return std::move(built_);
  }

 private:
  [[nodiscard]] PutQueue::Options options_of(std::size_t queue) const {
    const bool kernel = plan_.queues[queue].kind == QueueKind::Ibgda;
    return {.rank = plan_.queues[queue].rank,
            .queue = static_cast<std::int32_t>(queue),
            .poster = kernel ? PutQueue::Poster::Kernel : PutQueue::Poster::Proxy,
            .posts = !ideal_.no_launch,
            .fences = !ideal_.tile_edges};
  }

  [[nodiscard]] PutWriter writer() {
    return {.add =
                [this](Activity activity, std::int32_t queue, ActivityRole role, std::int32_t put) {
                  return add(std::move(activity), queue, TaskId(put), role);
                },
            .depend = [this](std::int32_t before, std::int32_t after,
                             Picoseconds delay) { depend(before, after, WaitKind::Event, delay); }};
  }

  [[nodiscard]] const Task& task_at(TaskId id) const { return plan_.tasks[id.index()]; }
  [[nodiscard]] RankId rank_of(TaskId id) const {
    return plan_.queues[task_at(id).queue.index()].rank;
  }
  [[nodiscard]] std::int32_t first_of(TaskId id) const { return built_.first_of_task[id.index()]; }
  [[nodiscard]] std::int32_t work_of(TaskId id) const { return built_.work_of_task[id.index()]; }
  [[nodiscard]] QueueKind queue_kind(TaskId id) const {
    return plan_.queues[task_at(id).queue.index()].kind;
  }

  void learn_groups() {
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      if (plan_.tasks[i].kind == TaskKind::Collective) {
        groups_[plan_.tasks[i].group].push_back(TaskId(static_cast<std::int64_t>(i)));
      }
    }
    for (auto& [group, members] : groups_) {
      std::ranges::sort(members, {}, [&](TaskId id) { return rank_of(id); });
    }
  }

  // Finds the strictest fence of each put's signals, and the tasks that wait for other queues.
  void learn_fences() {
    fences_.resize(plan_.tasks.size());
    waits_.resize(plan_.tasks.size(), 0);
    begins_group_.resize(plan_.tasks.size(), 0);
    for (const Sync& sync : plan_.syncs) {
      waits_[sync.to.index()] = 1;
      const bool packs = task_at(sync.from).kind == TaskKind::Pack;
      if (!packs || rank_of(sync.from) != rank_of(sync.to)) begins_group_[sync.to.index()] = 1;
      std::optional<Fence>& fence = fences_[sync.from.index()];
      if (sync.fence && (!fence || *sync.fence < *fence)) fence = sync.fence;
    }
    for (const Barrier& barrier : plan_.barriers) {
      for (const TaskId to : barrier.to) waits_[to.index()] = begins_group_[to.index()] = 1;
    }
  }

  const CollectiveCost& cost_of_group(std::int32_t group) {
    const auto [known, fresh] = group_costs_.try_emplace(group);
    if (fresh) known->second = costs_.collective_cost(groups_.at(group));
    return known->second;
  }

  std::int32_t add(Activity activity, std::int32_t queue, TaskId task, ActivityRole role) {
    activity.queue = queue;
    if (ideal_.no_launch) activity.start = {};
    built_.workload.activities.push_back(std::move(activity));
    built_.of.push_back({task, role});
    return static_cast<std::int32_t>(built_.of.size()) - 1;
  }

  void depend(std::int32_t before, std::int32_t after, WaitKind kind, Picoseconds delay) {
    built_.workload.dependencies.push_back(
        {before, after, kind, ideal_.no_launch ? Picoseconds() : delay});
  }

  void add_task(TaskId id) {
    const Task& task = task_at(id);
    const std::int32_t queue = task.queue.value;
    count_bytes(id);
    if (is_put(plan_, task)) {
      add_put(id);
      return;
    }
    // What a queue waits for between two puts may depend on a signal of the earlier puts, so their
    // batches end here.
    if (waits_[id.index()] != 0) puts_[task.queue.index()].end_batches(writer_);
    if (costs_.launches().by(id) == DoneBy::FusedStore) {
      add_fused_store(id);
      return;
    }
    Activity activity;
    if (task.kind == TaskKind::Collective) {
      const std::int32_t where = ideal_.tile_edges ? kNoQueue : queue;
      built_.first_of_task[id.index()] = add({}, where, id, ActivityRole::Arrive);
      activity = costs_.collective(id, cost_of_group(task.group));
    } else {
      activity = costs_.activity_of(id);
    }
    const bool grouped = continues_group(id);
    if (grouped) activity.start = {};
    last_of_queue_[task.queue.index()] = id;
    if (task.kind == TaskKind::Entry && !costs_.launches().bounds_epoch(rank_of(id))) {
      activity.start = machine_.processor.execution_start;
    }
    if (task.kind == TaskKind::Entry && options_.delay && options_.delay->rank == rank_of(id)) {
      activity.work = options_.delay->time;
    }
    const std::int32_t work = add(std::move(activity), queue, id, ActivityRole::Work);
    built_.begin_of_task[id.index()] = built_.work_of_task[id.index()] = work;
    if (first_of(id) < 0) built_.first_of_task[id.index()] = work;
    if (costs_.launches().by(id) == DoneBy::Kernel) add_tail(id);
    if (options_.launch == Launch::Host && !ideal_.no_launch && !grouped && is_launched(id)) {
      issue(id);
    }
  }

  // A launch ends only when its thread blocks are done with the tiles that they hold while they
  // wait for operands of a task. Adds that tail to the launch's last task.
  void add_tail(TaskId id) {
    const Picoseconds held = costs_.held(id);
    std::vector<std::int32_t>& tails = tails_of_launch_[costs_.launches().at(id)];
    if (held.value > 0 && waits_[id.index()] != 0) {
      Activity tiles;
      tiles.work = held;
      tails.push_back(add(std::move(tiles), kNoQueue, id, ActivityRole::Work));
      tails_.emplace(id, tails.back());
    }
    if (tails.empty() || !costs_.is_last(id)) return;
    const std::int32_t end = add({}, task_at(id).queue.value, id, ActivityRole::Work);
    for (const std::int32_t tail : tails) depend(tail, end, WaitKind::Queue, {});
    built_.work_of_task[id.index()] = end;
    tails.clear();
  }

  // What a task waits for also delays its tail. What a launch awaits before it begins delays all of
  // it.
  void hold_up(std::int32_t before, TaskId task, WaitKind kind, Picoseconds delay) {
    if (!costs_.launches().waits_inside(task)) task = costs_.launches().lead(task);
    depend(before, first_of(task), kind, delay);
    if (const auto tail = tails_.find(task); tail != tails_.end()) {
      depend(before, tail->second, kind, delay);
    }
  }

  // The library makes one launch of sends in a row that wait only for their packing.
  [[nodiscard]] bool continues_group(TaskId id) const {
    const auto is_send = [&](TaskId task) {
      return task_at(task).kind == TaskKind::Copy && task_at(task).via == Via::Nccl;
    };
    const std::optional<TaskId> last = last_of_queue_[task_at(id).queue.index()];
    return last && is_send(*last) && is_send(id) && begins_group_[id.index()] == 0;
  }

  [[nodiscard]] bool is_launched(TaskId id) const {
    const QueueKind kind = queue_kind(id);
    return kind != QueueKind::Host && kind != QueueKind::Proxy && kind != QueueKind::Ibgda &&
           costs_.launches().by(id) != DoneBy::Nothing && !costs_.continues_launch(id);
  }

  void issue(TaskId id) {
    Activity activity;
    activity.start = machine_.processor.kernel_issue;
    const std::int32_t queue = static_cast<std::int32_t>(plan_.queues.size()) + rank_of(id).value;
    depend(add(activity, queue, id, ActivityRole::Issue), first_of(id), WaitKind::Event, {});
  }

  void count_bytes(TaskId id) {
    const TaskKind kind = task_at(id).kind;
    if (kind == TaskKind::Entry || kind == TaskKind::Exit) return;
    for (const Crossing& crossing : costs_.crossings(id)) {
      for (const Hop& hop : path_between(machine_, crossing.from, crossing.to)) {
        built_.level_bytes[static_cast<std::size_t>(hop.level)] += crossing.bytes;
      }
    }
  }

  // The share of the last wave's totals that leave at once. Thread blocks are in step as long as
  // they await the sums of other ranks. Where the links take much less time for all totals than the
  // products of their tiles, sums come sooner than they are needed. Then blocks are assumed to end
  // one after the other, unless a kernel has so few tiles that all begin their last one together.
  // Fitted to 126 plans of `gemm_ar` on two H200 (docs/simulator.md).
  [[nodiscard]] double in_step_share(TaskId store, TaskId maker, Picoseconds work,
                                     Picoseconds made) const {
    constexpr double kNone = 0.25;
    constexpr double kAll = 0.45;
    constexpr double kFewWaves = 1.5;
    constexpr double kWaves = 2;
    const std::int64_t receivers = costs_.launches().receivers(store);
    if (receivers == 0 || made <= Picoseconds{}) return 1;
    const double share = work.scaled(static_cast<double>(receivers)).seconds() / made.seconds();
    const double waves = (kWaves - costs_.waves(maker)) / (kWaves - kFewWaves);
    return std::clamp(std::max((share - kNone) / (kAll - kNone), waves), 0.0, 1.0);
  }

  // Runs beside its queue: the kernel stores tiles while it computes, and the last tiles after the
  // last wave. The last totals leave when the last sums have arrived.
  void add_fused_store(TaskId id) {
    Activity store = costs_.activity_of(id);
    const std::vector<TaskId> makers = costs_.launches().makers(id);
    if (!makers.empty()) {
      const double last = costs_.last_wave(makers);
      Picoseconds made;
      for (const TaskId maker : makers) made += costs_.activity_of(maker).work;
      const double in_step = in_step_share(id, makers.front(), store.work, made);
      store.work = std::max(store.work.scaled(last), store.work - made.scaled(1 - last));
      store.work = store.work.scaled(in_step);
    }
    const std::int32_t work = add(std::move(store), kNoQueue, id, ActivityRole::Work);
    built_.first_of_task[id.index()] = work;
    built_.begin_of_task[id.index()] = built_.work_of_task[id.index()] = work;
    for (const TaskId maker : makers) {
      built_.workload.dependencies.push_back(
          {work_of(maker), work, WaitKind::Queue, costs_.late(maker)});
    }
    for (const TaskId total : costs_.launches().totals(id)) {
      depend(work_of(total), work, WaitKind::Queue, {});
    }
  }

  void add_put(TaskId id) {
    const Task& task = task_at(id);
    const PutQueue::Posted posted =
        puts_[task.queue.index()].post({.put = id.value,
                                        .to = destination_of(plan_, task),
                                        .level = level_of(task),
                                        .flight = costs_.activity_of(id),
                                        .fence = fences_[id.index()],
                                        .waits = waits_[id.index()] != 0},
                                       writer_);
    built_.first_of_task[id.index()] = posted.post;
    built_.begin_of_task[id.index()] = built_.work_of_task[id.index()] = posted.flight;
  }

  [[nodiscard]] int level_of(const Task& task) const {
    const RankId from = plan_.allocs[task.reads.front().alloc.index()].rank;
    const RankId to = destination_of(plan_, task);
    return from == to ? 0 : level_between(machine_, from.value, to.value);
  }

  // All members wait for the last one to arrive. With tile edges, a member waits for one source
  // after the other, beginning with the next rank.
  void join_members(const std::vector<TaskId>& members) {
    const std::size_t count = members.size();
    if (ideal_.tile_edges) {
      for (std::size_t to = 0; to < count; ++to) {
        for (std::size_t step = 1; step < count; ++step) {
          depend(first_of(members[(to + step) % count]), work_of(members[to]), WaitKind::Member,
                 {});
        }
      }
      return;
    }
    const std::int32_t join = add({}, kNoQueue, {}, ActivityRole::Join);
    for (const TaskId member : members) {
      depend(first_of(member), join, WaitKind::Member, {});
      depend(join, work_of(member), WaitKind::Member, {});
    }
  }

  // The activity whose end raises the signal. An event behind a put waits until the put and all
  // earlier puts of its queue have completed, as a barrier does.
  [[nodiscard]] std::int32_t raised_by(const Sync& sync) {
    if (!is_put(plan_, task_at(sync.from))) return work_of(sync.from);
    if (sync.kind == SyncKind::Event) return completed(sync.from);
    return puts_[task_at(sync.from).queue.index()].signal_of(sync.from.value);
  }

  std::int32_t completed(TaskId put) {
    return puts_[task_at(put).queue.index()].completed(put.value, writer_);
  }

  // A kernel that bounds its rank's execution waits for other ranks' Entries while it loads.
  [[nodiscard]] bool waits_behind_loads(TaskId task, TaskId before) const {
    return task_at(before).kind == TaskKind::Entry && rank_of(before) != rank_of(task) &&
           costs_.launches().bounds_epoch(rank_of(task)) &&
           costs_.launches().by(task) != DoneBy::FusedCopy;
  }

  void add_sync(const Sync& sync) {
    if (!costs_.launches().waits(sync.to, sync.from)) return;
    if (waits_behind_loads(sync.to, sync.from)) return;
    const RankId from = rank_of(sync.from);
    const RankId to = rank_of(sync.to);
    const std::int32_t before = raised_by(sync);
    if (from != to) {
      const bool is_running = task_at(sync.from).kind == TaskKind::Entry &&
                              costs_.launches().bounds_epoch(from) &&
                              costs_.launches().bounds_epoch(to);
      const Picoseconds delay = is_running ? kBetweenKernels : signal_delay(machine_, from, to);
      hold_up(before, sync.to, WaitKind::Signal, delay);
      return;
    }
    // Entries and exits cost no event, because no kernel runs before an entry or after an exit.
    const bool hosted =
        queue_kind(sync.from) == QueueKind::Host || queue_kind(sync.to) == QueueKind::Host;
    hold_up(before, sync.to, WaitKind::Event, hosted ? Picoseconds() : machine_.processor.event);
  }

  void add_barrier(const Barrier& barrier) {
    if (ideal_.tile_edges) {
      relax_barrier(barrier);
      return;
    }
    std::vector<RankId> ranks;
    for (const TaskId id : barrier.from) ranks.push_back(rank_of(id));
    for (const TaskId id : barrier.to) ranks.push_back(rank_of(id));
    const std::int32_t join = add({}, kNoQueue, {}, ActivityRole::Join);
    const Picoseconds delay = barrier_delay(machine_, ranks);
    for (const TaskId id : barrier.from) {
      const bool put = is_put(plan_, task_at(id));
      depend(put ? completed(id) : work_of(id), join, WaitKind::Barrier, {});
    }
    for (const TaskId id : barrier.to) {
      const auto is_hidden = [&](TaskId from) {
        return rank_of(from) == rank_of(id) || waits_behind_loads(id, from);
      };
      if (!std::ranges::all_of(barrier.from, is_hidden)) {
        hold_up(join, id, WaitKind::Barrier, delay);
      }
    }
  }

  // Only tasks that touch the same memory wait for each other.
  void relax_barrier(const Barrier& barrier) {
    std::map<AllocId, std::vector<TaskId>> touched_by;
    for (const TaskId id : barrier.from) {
      for (const AllocId alloc : touched(id)) touched_by[alloc].push_back(id);
    }
    for (const TaskId to : barrier.to) {
      std::set<TaskId> before;
      for (const AllocId alloc : touched(to)) {
        const auto found = touched_by.find(alloc);
        if (found != touched_by.end()) before.insert(found->second.begin(), found->second.end());
      }
      for (const TaskId from : before) {
        depend(work_of(from), first_of(to), WaitKind::Barrier,
               rank_of(from) == rank_of(to) ? machine_.processor.event
                                            : signal_delay(machine_, rank_of(from), rank_of(to)));
      }
    }
  }

  [[nodiscard]] std::set<AllocId> touched(TaskId id) const {
    std::set<AllocId> allocs;
    for (const Ref& ref : task_at(id).reads) allocs.insert(ref.alloc);
    for (const Ref& ref : task_at(id).writes) allocs.insert(ref.alloc);
    return allocs;
  }

  const Plan& plan_;
  const Machine& machine_;
  const SimulateOptions& options_;
  Idealisation ideal_;
  BuiltWorkload built_;
  TaskCosts costs_;
  std::map<std::int32_t, std::vector<TaskId>> groups_;
  std::map<std::int32_t, CollectiveCost> group_costs_;
  std::vector<std::optional<Fence>> fences_;  // per task: of the signals behind a put
  std::vector<char> waits_;                   // per task: it waits for other queues
  std::vector<char> begins_group_;            // per task: the same, without its own packing
  std::map<TaskId, std::int32_t> tails_;      // activities
  std::map<std::size_t, std::vector<std::int32_t>> tails_of_launch_;
  PutWriter writer_ = writer();
  std::vector<PutQueue> puts_;  // per queue
  std::vector<std::optional<TaskId>> last_of_queue_;
};

}  // namespace

BuiltWorkload build_workload(const Plan& plan, const launch::LaunchPlan& launches,
                             const Machine& machine, const SimulateOptions& options) {
  return Builder(plan, launches, machine, options).run();
}

}  // namespace harpe
