#include "sim/task_costs.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "support/check.h"

namespace harpe {
namespace {

// Of kernels that read or write another rank's memory in place.
const TransportRate* find_kernel_transport(const Machine& machine, int level) {
  constexpr std::array<std::string_view, 2> kInKernel = {"tma", "sm"};
  for (const std::string_view via : kInKernel) {
    if (const TransportRate* const rate = find_transport(machine, via, level)) return rate;
  }
  return nullptr;
}

}  // namespace

TaskCosts::TaskCosts(const Plan& plan, const Machine& machine, const ResourceMap& map,
                     const Idealisation& ideal)
    : plan_(plan), machine_(machine), map_(map), ideal_(ideal), work_(plan) {
  routed_ = std::ranges::any_of(
      plan.program.decls, [](const Decl& decl) { return std::holds_alternative<Route>(decl); });
  find_kernels();
  measure();
}

RankId TaskCosts::rank_of(const Task& task) const { return plan_.lanes[task.lane.index()].rank; }
RankId TaskCosts::rank_of(const Ref& ref) const { return plan_.allocs[ref.alloc.index()].rank; }

const Stmt& TaskCosts::statement_of(const Task& task) const {
  const Nest* const nest = find_nest(plan_.program, task.nest);
  HP_CHECK(nest != nullptr, "a task's nest");
  return nest->stmts[static_cast<std::size_t>(task.stmt)];
}

std::int64_t TaskCosts::sms_of(const Task& task) const {
  for (const Fuse& fuse : plan_.form.fuses) {
    if (fuse.sm && std::ranges::find(fuse.nests, task.nest) != fuse.nests.end()) return *fuse.sm;
  }
  const NestForm* const form = find_nest(plan_.form, task.nest);
  return form == nullptr ? 0 : form->leaf.sm.value_or(0);
}

// A kernel is a run of tasks of its lane, from the first to the last of its number.
void TaskCosts::find_kernels() {
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> last;
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    const Task& task = plan_.tasks[i];
    if (task.kernel >= 0) last[{task.lane.value, task.kernel}] = i;
  }
  continues_.resize(plan_.tasks.size(), 0);
  std::vector<std::size_t> open_until(plan_.lanes.size(), 0);  // one past the kernel's last task
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    const Task& task = plan_.tasks[i];
    std::size_t& until = open_until[task.lane.index()];
    continues_[i] = i < until ? 1 : 0;
    if (task.kernel >= 0) until = std::max(until, last.at({task.lane.value, task.kernel}) + 1);
  }
}

void TaskCosts::measure() {
  shapes_.resize(plan_.tasks.size());
  masked_.resize(plan_.tasks.size(), 0);
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    const Task& task = plan_.tasks[i];
    if (task.kind != TaskKind::Compute) continue;
    const TaskWork work = work_.of(task);
    masked_[i] = work.masked ? 1 : 0;
    shapes_[i] = {.batch = work.batch,
                  .rows = work.rows,
                  .columns = work.columns,
                  .depth = work.depth,
                  .flops = work.flops,
                  .bytes = memory_bytes(task)};
    if (task.kernel < 0) continue;
    const auto [kernel, first] =
        kernels_.try_emplace({task.lane.value, task.kernel, task.nest, task.stmt}, shapes_[i]);
    if (first) continue;
    // As many tiles as all its tasks have: what one task's last wave leaves free the next fills.
    const double before = kernel->second.flops;
    kernel->second.flops += work.flops;
    kernel->second.bytes += shapes_[i].bytes;
    if (before > 0) kernel->second.batch *= kernel->second.flops / before;
  }
}

// Read and written in its own rank's memory.
double TaskCosts::memory_bytes(const Task& task) const {
  const RankId rank = rank_of(task);
  double bytes = 0;
  const auto count = [&](const Ref& ref, double times) {
    const Alloc& alloc = plan_.allocs[ref.alloc.index()];
    if (alloc.rank != rank) return;
    const bool passes =
        alloc.level != Level::Home || find_buffer(plan_.program, alloc.buffer)->role == Role::Temp;
    if (ideal_.no_round_trips && passes) return;
    bytes += times * work_.bytes_of(ref);
  };
  for (const Ref& ref : task.reads) count(ref, 1);
  for (const Ref& ref : task.writes) count(ref, ref.mode == WriteMode::Add ? 2 : 1);
  return bytes;
}

// What one read brings, in the type in which it travels.
double TaskCosts::arriving(const Task& task, std::size_t read) const {
  const Ref& from = task.reads[read];
  const Ref& to = task.writes[std::min(read, task.writes.size() - 1)];
  const DType held = plan_.allocs[from.alloc.index()].dtype;
  const DType sent = task.wire.value_or(plan_.allocs[to.alloc.index()].dtype);
  const double elements = work_.bytes_of(from) / static_cast<double>(size_in_bytes(held));
  return elements * static_cast<double>(size_in_bytes(sent));
}

std::vector<Crossing> TaskCosts::crossings(TaskId id) const {
  const Task& task = plan_.tasks[id.index()];
  std::map<std::pair<RankId, RankId>, double> bytes;
  const bool moves = task.kind == TaskKind::Copy || task.kind == TaskKind::Collective;
  for (std::size_t i = 0; i < task.reads.size(); ++i) {
    const RankId from = rank_of(task.reads[i]);
    const RankId to =
        moves ? rank_of(task.writes[std::min(i, task.writes.size() - 1)]) : rank_of(task);
    if (from == to) continue;
    bytes[{from, to}] += moves ? arriving(task, i) : work_.bytes_of(task.reads[i]);
  }
  for (const Ref& ref : task.writes) {
    if (!moves && rank_of(ref) != rank_of(task) && task.kind != TaskKind::Entry &&
        task.kind != TaskKind::Exit) {
      bytes[{rank_of(task), rank_of(ref)}] += work_.bytes_of(ref);
    }
  }
  std::vector<Crossing> crossings;
  double sum = 0;
  for (const auto& [ranks, crossing] : bytes) {
    crossings.push_back({ranks.first, ranks.second, crossing});
    sum += crossing;
  }
  // The plan says what crosses, unless a route decides.
  if (moves && !routed_ && sum > 0) {
    for (Crossing& crossing : crossings) {
      crossing.bytes *= static_cast<double>(task.bytes) / sum;
    }
  }
  return crossings;
}

Activity TaskCosts::compute(TaskId id) const {
  const Task& task = plan_.tasks[id.index()];
  const LeafShape& own = shapes_[id.index()];
  const Stmt& stmt = statement_of(task);
  if (own.batch * own.rows * own.columns * own.depth == 0) return launch_activity(machine_);
  LeafShape shape = own;
  double share = 1;
  if (task.kernel >= 0) {
    shape = kernels_.at({task.lane.value, task.kernel, task.nest, task.stmt});
    if (shape.flops > 0) {
      share = own.flops / shape.flops;
    } else if (shape.bytes > 0) {
      share = own.bytes / shape.bytes;
    }
  }
  const Buffer& operand = *find_buffer(plan_.program, stmt.operands.front().buffer);
  const std::string dtype(print(operand.dtype));
  Activity activity = compute_activity(machine_, map_, rank_of(task),
                                       {.leaf = stmt.leaf,
                                        .dtype = dtype,
                                        .shape = shape,
                                        .causal = masked_[id.index()] != 0,
                                        .sms = sms_of(task)});
  activity.work = from_seconds(activity.work.seconds() * share);
  return activity;
}

Activity TaskCosts::transfer(const Task& task) const {
  const RankId to = rank_of(task.writes.front());
  const RankId from = rank_of(task.reads.front());
  TransferCost cost{.via = print(task.via), .from = from, .to = to, .driver = rank_of(task)};
  if (from == to) {
    cost.bytes = memory_bytes(task) / 2;
    return transfer_activity(machine_, map_, cost);
  }
  const TaskId id(&task - plan_.tasks.data());
  for (const Crossing& crossing : crossings(id)) cost.bytes += crossing.bytes;
  return transfer_activity(machine_, map_, cost);
}

// What a kernel reads or writes in place on other ranks takes the links at the kernel's pace, and
// no less time than the links need.
void TaskCosts::reach_other_ranks(const Task& task, Activity& activity) const {
  const TaskId id(&task - plan_.tasks.data());
  const std::vector<Crossing> all = crossings(id);
  double slowest = activity.work.seconds();
  Picoseconds latency;
  for (const Crossing& crossing : all) {
    latency = std::max(latency, signal_delay(machine_, crossing.from, crossing.to));
    const TransportRate* const rate = find_kernel_transport(
        machine_, level_between(machine_, crossing.from.value, crossing.to.value));
    if (rate != nullptr) slowest = std::max(slowest, crossing.bytes / rate->bandwidth);
  }
  if (slowest > activity.work.seconds()) {
    const double pace = activity.work.seconds() / slowest;
    for (Use& use : activity.uses) {
      const ResourceKind kind = map_.list[static_cast<std::size_t>(use.resource)].kind;
      if (kind == ResourceKind::Memory) use.rate *= pace;
    }
    std::erase_if(activity.uses, [](const Use& use) { return use.rate <= 0; });
    activity.work = from_seconds(slowest);
  }
  if (activity.work.value == 0) return;
  for (const Crossing& crossing : all) {
    add_crossing(machine_, map_, activity,
                 {.from = crossing.from, .to = crossing.to, .bytes = crossing.bytes});
  }
  if (!continues_kernel(id)) activity.start += latency;
}

Activity TaskCosts::activity_of(TaskId id) const {
  const Task& task = plan_.tasks[id.index()];
  Activity activity;
  switch (task.kind) {
    case TaskKind::Entry:
    case TaskKind::Exit:
      return activity;
    case TaskKind::Copy:
      activity = transfer(task);
      break;
    case TaskKind::Compute:
      activity = compute(id);
      reach_other_ranks(task, activity);
      break;
    case TaskKind::Init:
    case TaskKind::Fold:
    case TaskKind::Finalise:
    case TaskKind::Pack:
    case TaskKind::Unpack:
      activity = fold_activity(machine_, map_, rank_of(task), memory_bytes(task));
      reach_other_ranks(task, activity);
      break;
    case TaskKind::Collective:
      HP_CHECK(false, "a collective is costed with its members");
  }
  if (continues_kernel(id)) {
    activity.start = {};
    activity.resident = true;
  }
  return activity;
}

CollectiveCost TaskCosts::collective_cost(const std::vector<TaskId>& members) const {
  const auto count = static_cast<double>(members.size());
  CollectiveCost cost{.members = static_cast<std::int64_t>(members.size())};
  const RankId first = rank_of(plan_.tasks[members.front().index()]);
  double most = 0;  // that enters one member
  for (const TaskId member : members) {
    const RankId rank = rank_of(plan_.tasks[member.index()]);
    if (rank != first) {
      cost.level = std::max(cost.level, level_between(machine_, first.value, rank.value));
    }
    double entering = 0;
    for (const Crossing& crossing : crossings(member)) entering += crossing.bytes;
    most = std::max(most, entering);
  }
  std::int64_t inner = 1;  // processors that meet below the level
  for (int level = 0; level < cost.level; ++level) {
    inner *= machine_.levels[static_cast<std::size_t>(level)].size;
  }
  std::set<std::int64_t> groups;
  for (const TaskId member : members) {
    groups.insert(rank_of(plan_.tasks[member.index()]).value / inner);
  }
  cost.groups = static_cast<std::int64_t>(groups.size());
  const double others = std::max(1.0, count - 1);
  switch (plan_.tasks[members.front().index()].collective) {
    case CollectiveOp::AllGather:
      cost.kind = CollectiveKind::AllGather;
      cost.bytes = most / others;
      break;
    case CollectiveOp::AllToAll:
      cost.kind = CollectiveKind::AllToAll;
      cost.bytes = most * count / others;
      break;
    case CollectiveOp::ReduceScatter:
      cost.kind = CollectiveKind::ReduceScatter;
      cost.bytes = most * count / others;
      break;
  }
  return cost;
}

Activity TaskCosts::collective(TaskId id, const CollectiveCost& cost) const {
  return collective_activity(machine_, map_, rank_of(plan_.tasks[id.index()]), cost);
}

}  // namespace harpe
