#include "sim/task_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "offers/offers.h"
#include "sim/launches.h"
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

bool has_points(const LeafShape& shape) {
  return shape.batch * shape.rows * shape.columns * shape.depth != 0;
}

// Does the last task only add to what others of the launch have begun?
bool adds_to_others(std::span<const LaunchPart> parts) {
  const LaunchPart& last = parts.back();
  return last.refs[last.operands]->mode == WriteMode::Add;
}

}  // namespace

TaskCosts::TaskCosts(const Plan& plan, const Machine& machine, const ResourceMap& map,
                     const Idealisation& ideal,
                     const std::vector<std::vector<TaskId>>& fused_stores)
    : plan_(plan), machine_(machine), map_(map), ideal_(ideal), work_(plan) {
  routed_ = std::ranges::any_of(
      plan.program.decls, [](const Decl& decl) { return std::holds_alternative<Route>(decl); });
  if (machine.processor.sms > 1) {
    at_home_ = find_at_home(plan, fused_stores);
  } else {
    at_home_ = {.rounded = std::vector<char>(plan.tasks.size(), 0),
                .added = std::vector<char>(plan.tasks.size(), 0),
                .written = std::vector<double>(plan.tasks.size(), 1)};
  }
  waits_.resize(plan.tasks.size(), 0);
  raises_.resize(plan.tasks.size(), 0);
  for (const Sync& sync : plan.syncs) {
    const bool enters = plan.tasks[sync.from.index()].kind == TaskKind::Entry;
    if (!enters) waits_[sync.to.index()] = 1;
    const Task& from = plan.tasks[sync.from.index()];
    if (rank_of(from) != rank_of(plan.tasks[sync.to.index()])) raises_[sync.from.index()] = 1;
  }
  find_kernels(fused_stores);
  measure();
}

RankId TaskCosts::rank_of(const Task& task) const { return plan_.queues[task.queue.index()].rank; }
RankId TaskCosts::rank_of(const Ref& ref) const { return plan_.allocs[ref.alloc.index()].rank; }
DType TaskCosts::dtype_of(const Ref& ref) const { return plan_.allocs[ref.alloc.index()].dtype; }

const Stmt& TaskCosts::statement_of(const Task& task) const {
  const Nest* const nest = find_nest(plan_.program, task.nest);
  HP_CHECK(nest != nullptr, "a task's nest");
  return nest->stmts[static_cast<std::size_t>(task.stmt)];
}

std::string TaskCosts::operand_type(const Task& task) const {
  const std::string& buffer = statement_of(task).operands.front().buffer;
  return std::string(print(find_buffer(plan_.program, buffer)->dtype));
}

Supplier TaskCosts::supplier_of(const Task& task) const {
  const KernelOffer* const kernel = find_offer(task.leaf_kernel);
  return kernel != nullptr && kernel->by_library ? Supplier::Library : Supplier::Own;
}

std::int64_t TaskCosts::sms_of(const Task& task) const {
  for (const Fuse& fuse : plan_.form.fuses) {
    if (fuse.sm && std::ranges::find(fuse.nests, task.nest) != fuse.nests.end()) return *fuse.sm;
  }
  const NestForm* const form = find_nest(plan_.form, task.nest);
  return form == nullptr ? 0 : form->leaf.sm.value_or(0);
}

// A kernel is a run of tasks of its queue, from the first to the last of its number.
void TaskCosts::find_kernels(const std::vector<std::vector<TaskId>>& fused_stores) {
  if (machine_.processor.sms > 1) {
    launches_ = find_launches(plan_);
  } else {
    for (const Task& task : plan_.tasks) launches_.push_back(task.kernel);
  }
  sends_.resize(plan_.tasks.size(), 0);
  for (const std::vector<TaskId>& products : fused_stores) {
    for (const TaskId product : products) sends_[product.index()] = 1;
  }
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> last;
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    if (launches_[i] >= 0) last[{plan_.tasks[i].queue.value, launches_[i]}] = i;
  }
  continues_.resize(plan_.tasks.size(), 0);
  std::vector<std::size_t> open_until(plan_.queues.size(), 0);  // one past the kernel's last task
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    const Task& task = plan_.tasks[i];
    std::size_t& until = open_until[task.queue.index()];
    continues_[i] = i < until ? 1 : 0;
    if (launches_[i] >= 0) until = std::max(until, last.at({task.queue.value, launches_[i]}) + 1);
  }
}

void TaskCosts::measure() {
  shapes_.resize(plan_.tasks.size());
  kernel_.resize(plan_.tasks.size());
  shares_.resize(plan_.tasks.size(), 1);
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    const Task& task = plan_.tasks[i];
    if (task.kind != TaskKind::Compute) continue;
    const TaskWork work = work_.of(task);
    shapes_[i] = {.batch = work.batch,
                  .rows = work.rows,
                  .columns = work.columns,
                  .depth = work.depth,
                  .flops = work.flops};
    if (!has_points(shapes_[i])) continue;
    // What is of no launch with others is one of its own.
    const std::int32_t number =
        launches_[i] >= 0 ? launches_[i] : -1 - static_cast<std::int32_t>(i);
    Kernel& kernel = kernels_[{task.queue.value, number, task.nest, task.stmt}];
    kernel.tasks.emplace_back(static_cast<std::int64_t>(i));
    kernel.masked = kernel.masked || work.masked;
    kernel.sends = kernel.sends || sends_[i] != 0;
    kernel_[i] = &kernel;
  }
  for (auto& [key, kernel] : kernels_) measure(kernel);
}

void TaskCosts::measure(Kernel& kernel) {
  const Task& first = plan_.tasks[kernel.tasks.front().index()];
  const std::string& leaf = statement_of(first).leaf;
  std::vector<LaunchPart> parts;
  for (const TaskId task : kernel.tasks) parts.push_back(part_of(task));
  const LeafRate& rate = find_rate(machine_, leaf, operand_type(first));
  const LaunchWork work =
      joined_work(plan_, machine_.processor, leaf, kernel.masked, rate.few_rows, parts);
  kernel.activity = leaf_activity(first, work, kernel.masked);
  if (parts.size() == 1) return;
  if (kernel.sends && !has_few_rows(rate, work.shape)) {
    // Every panel that leaves is stored by whole tiles of its own, however few rows it has.
    const double tile = rate.held_rows > 0 ? rate.held_rows : rate.tile_rows;
    const double more = tiles_apart(parts, tile);
    take(kernel.activity, from_seconds(kernel.activity.work.seconds() * more));
  }
  const std::int64_t sms = sms_of(first) > 0 ? sms_of(first) : machine_.processor.sms;
  const double waves =
      ideal_.tile_edges ? 1 : leaf_waves(machine_, leaf, operand_type(first), work.shape, sms);
  const std::vector<double> shares = shares_of(parts, waves);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    shares_[kernel.tasks[i].index()] = shares[i];
  }
  measure_alone(kernel, parts);
}

// One after the other in one launch, tasks take no longer than each in one of its own; and however
// many processors are free by then, the last no less than its own tiles do.
void TaskCosts::measure_alone(Kernel& kernel, std::span<const LaunchPart> parts) {
  Picoseconds all;
  Picoseconds last;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == 0 || parts[i].shape != parts[i - 1].shape) {
      const Task& task = plan_.tasks[kernel.tasks[i].index()];
      const LaunchWork own = joined_work(plan_, machine_.processor, statement_of(task).leaf,
                                         kernel.masked, 0, parts.subspan(i, 1));
      last = leaf_activity(task, own, kernel.masked).work;
    }
    all += last;
  }
  if (all < kernel.activity.work) take(kernel.activity, all);
  if (!ideal_.tile_edges && !adds_to_others(parts)) kernel.alone = last;
}

// The same bytes in so much time, at no more than the memory's bandwidth.
void TaskCosts::take(Activity& activity, Picoseconds work) const {
  const double pace = activity.work.seconds() / work.seconds();
  for (Use& use : activity.uses) {
    if (map_.list[static_cast<std::size_t>(use.resource)].kind == ResourceKind::Memory) {
      use.rate = std::min(use.rate * pace, machine_.processor.memory_bandwidth);
    }
  }
  activity.work = work;
}

LaunchPart TaskCosts::part_of(TaskId id) const {
  const Task& task = plan_.tasks[id.index()];
  LaunchPart part{.shape = shapes_[id.index()],
                  .refs = {},
                  .named = {},
                  .touched = {},
                  .operands = task.reads.size(),
                  .waits = waits_[id.index()] != 0};
  const auto add = [&](const Ref& ref, double share) {
    part.refs.push_back(&ref);
    part.named.push_back(work_.bytes_of(ref));
    part.touched.push_back(share * touched(task, ref));
    part.shape.bytes += part.touched.back();
  };
  for (const Ref& ref : task.reads) add(ref, 1);
  for (const Ref& ref : task.writes) add(ref, at_home_.written[id.index()]);
  return part;
}

// In its own rank's memory, once.
double TaskCosts::touched(const Task& task, const Ref& ref) const {
  const Alloc& alloc = plan_.allocs[ref.alloc.index()];
  if (alloc.rank != rank_of(task)) return 0;
  const bool passes =
      alloc.level != Level::Home || find_buffer(plan_.program, alloc.buffer)->role == Role::Temp;
  return ideal_.no_round_trips && passes ? 0 : work_.bytes_of(ref);
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
  const bool moves = task.kind == TaskKind::Copy || task.kind == TaskKind::Collective;
  std::map<std::pair<RankId, RankId>, double> bytes;
  double told = 0;
  for (std::size_t i = 0; i < task.reads.size(); ++i) {
    const RankId from = rank_of(task.reads[i]);
    const RankId to =
        moves ? rank_of(task.writes[std::min(i, task.writes.size() - 1)]) : rank_of(task);
    if (from == to) continue;
    const double crossing = moves ? arriving(task, i) : work_.bytes_of(task.reads[i]);
    told += crossing;
    bytes[{from, to}] += crossing * (moves ? widening(task, i) : readings(id, i, from));
  }
  for (const Ref& ref : task.writes) {
    if (!moves && rank_of(ref) != rank_of(task) && task.kind != TaskKind::Entry &&
        task.kind != TaskKind::Exit) {
      bytes[{rank_of(task), rank_of(ref)}] += work_.bytes_of(ref);
    }
  }
  // The plan says what crosses, unless a route decides.
  const bool is_told = moves && !routed_ && told > 0;
  const double scale = is_told ? static_cast<double>(task.bytes) / told : 1;
  std::vector<Crossing> crossings;
  for (const auto& [ranks, crossing] : bytes) {
    crossings.push_back({ranks.first, ranks.second, crossing * scale});
  }
  return crossings;
}

// How often an operand that lies in place on another rank crosses: once for each tile that needs
// it, as no cache of the reader's holds memory of others, and as whole tiles, however few of their
// rows there are. On a bus there is one memory for all.
double TaskCosts::readings(TaskId id, std::size_t read, RankId from) const {
  const Task& task = plan_.tasks[id.index()];
  if (task.kind != TaskKind::Compute || !is_leaf(statement_of(task).leaf, Leaf::Matmul)) return 1;
  const int level = level_between(machine_, from.value, rank_of(task).value);
  if (machine_.levels[static_cast<std::size_t>(level)].kind == LevelKind::Bus) return 1;
  const LeafRate& rate = find_rate(machine_, print(Leaf::Matmul), operand_type(task));
  const LeafShape& shape = shapes_[id.index()];
  const double own = read == 0 ? rate.tile_rows : rate.tile_columns;
  const double tile = read == 0 ? rate.tile_columns : rate.tile_rows;
  if (tile <= 0) return 1;
  const double extent = read == 0 ? shape.rows : shape.columns;
  const double whole = own > 0 ? std::ceil(extent / own) * own / extent : 1;
  return whole * std::ceil((read == 0 ? shape.columns : shape.rows) / tile);
}

// Engines move bytes as they are: what changes type on the way is a kernel's work.
bool TaskCosts::converts(const Task& task) const {
  if (task.kind != TaskKind::Copy || (task.via != Via::Ce && task.via != Via::Tma)) return false;
  return dtype_of(task.reads.front()) != dtype_of(task.writes.front());
}

// How many times what the plan says crosses for one read. Who takes a part and rounds it reads it
// in the type that it is held in.
double TaskCosts::widening(const Task& task, std::size_t read) const {
  const RankId from = rank_of(task.reads[read]);
  const RankId to = rank_of(task.writes[std::min(read, task.writes.size() - 1)]);
  const auto held = static_cast<double>(size_in_bytes(dtype_of(task.reads[read])));
  if (converts(task) && to == rank_of(task)) {
    return held / static_cast<double>(size_in_bytes(dtype_of(task.writes[read])));
  }
  if (task.kind != TaskKind::Collective || !task.wire) return 1;
  const int level = level_between(machine_, from.value, to.value);
  return crosses_unrounded(task, level) ? held / static_cast<double>(size_in_bytes(*task.wire)) : 1;
}

// Who takes a part of the collective rounds it: on all machines where the machine's line says so,
// and where its sums are priced as our own pulls.
bool TaskCosts::crosses_unrounded(const Task& task, int level) const {
  const TransportRate* const rate = find_transport(machine_, "nccl", level);
  if (rate == nullptr || rate->unrounded != 0) return rate != nullptr;
  if (task.collective != CollectiveOp::ReduceScatter) return false;
  std::set<RankId> ranks;
  for (const Ref& read : task.reads) ranks.insert(rank_of(read));
  return collective_samples_of(machine_, CollectiveKind::ReduceScatter, level,
                               static_cast<std::int64_t>(ranks.size()),
                               Supplier::Own) == Supplier::Own;
}

Activity TaskCosts::compute(TaskId id) const {
  const Kernel* const kernel = kernel_[id.index()];
  if (kernel == nullptr) return launch_activity(machine_);
  Activity activity = kernel->activity;
  activity.work = activity.work.scaled(shares_[id.index()]);
  return activity;
}

Picoseconds TaskCosts::alone(TaskId id) const {
  const Kernel* const kernel = kernel_[id.index()];
  return kernel != nullptr && kernel->tasks.back() == id ? kernel->alone : Picoseconds();
}

Activity TaskCosts::leaf_activity(const Task& task, const LaunchWork& work, bool masked) const {
  return compute_activity(machine_, map_, rank_of(task),
                          {.leaf = statement_of(task).leaf,
                           .dtype = operand_type(task),
                           .shape = work.shape,
                           .carried = work.carried,
                           .causal = masked,
                           .sms = sms_of(task),
                           .by = supplier_of(task)});
}

Activity TaskCosts::transfer(const Task& task) const {
  const RankId to = rank_of(task.writes.front());
  const RankId from = rank_of(task.reads.front());
  TransferCost cost{.via = print(task.via), .from = from, .to = to, .driver = rank_of(task)};
  if (from == to) {
    for (const Ref& ref : task.reads) cost.bytes += touched(task, ref) / 2;
    for (const Ref& ref : task.writes) cost.bytes += touched(task, ref) / 2;
    return transfer_activity(machine_, map_, cost);
  }
  const TaskId id(&task - plan_.tasks.data());
  for (const Crossing& crossing : crossings(id)) cost.bytes += crossing.bytes;
  const int level = level_between(machine_, from.value, to.value);
  // What nobody tells how many multiprocessors it may have takes all there are.
  if (const TransportRate* const rate = find_transport(machine_, "sm", level);
      rate != nullptr && converts(task)) {
    cost.via = "sm";
    cost.sms = machine_.processor.sms;
    if (to == cost.driver) cost.bandwidth = rate->converting;
  } else {
    cost.sms = sms_of_move(task.via);
  }
  Activity activity = transfer_activity(machine_, map_, cost);
  // An engine of a processor that computes beside it copies the signal behind what it moves too.
  const bool by_engine = task.via == Via::Ce && !converts(task) && machine_.processor.sms > 1;
  if (by_engine && raises_[id.index()] != 0) activity.start += activity.start;
  return activity;
}

std::int64_t TaskCosts::sms_of_move(Via via) const {
  for (const NestForm& nest : plan_.form.nests) {
    for (const NestItem& item : nest.items) {
      const auto* const move = std::get_if<Move>(&item);
      if (move != nullptr && move->transport() == via && move->sm) return *move->sm;
    }
  }
  return 0;
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
      if (at_home_.added[id.index()] != 0) {
        activity = added_at_home(task);
      } else if (at_home_.rounded[id.index()] == 0) {
        activity = passes_activity(machine_, map_, rank_of(task),
                                   print(dtype_of(task.writes.front())), passes_of(task));
        reach_other_ranks(task, activity);
      }
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
  const Task& task = plan_.tasks[id.index()];
  const TransportRate* const rate = find_transport(machine_, "nccl", cost.level);
  CollectiveCost own = cost;
  own.dtype = task.writes.empty() ? "" : print(dtype_of(task.writes.front()));
  if (rate != nullptr && crosses_unrounded(task, cost.level)) {
    own.passes = passes_of_sum(task);
    if (!own.passes.empty()) own.bandwidth = rate->converting;
  }
  return collective_activity(machine_, map_, rank_of(task), own);
}

}  // namespace harpe
