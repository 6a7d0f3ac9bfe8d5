#include "sim/task_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "offers/offers.h"
#include "support/check.h"

namespace harpe {
namespace {

// Costs of short plans on GPUs that `profile` does not measure, fitted to plans of few rows on 2
// H200 (docs/simulator.md).
// Extra start of a copy engine in a graph, for copies of at most kShortCopy bytes.
constexpr Picoseconds kEngineInGraph = from_microseconds(3.0);
// The same behind another copy of its queue; fitted to plans on 4 H200.
constexpr Picoseconds kEngineBehindEngine = from_microseconds(0.6);
constexpr double kShortCopy = 1 << 21;
// Extra start of a kernel that raises a signal behind an engine's copy.
constexpr Picoseconds kRaisedBehindEngine = from_microseconds(6.0);
// Extra start of a kernel that adds to a sum what an engine has copied; fitted to two rings on 2
// H200.
constexpr Picoseconds kSumBehindEngine = from_microseconds(6.0);
// The end of a kernel whose thread blocks have to agree that all have ended.
constexpr Picoseconds kAgreement = from_microseconds(2.4);
// Extra delay until other ranks see what such a kernel stores for them without a flag.
constexpr Picoseconds kInData = from_microseconds(1.0);

// A state of attention has several parts.
bool is_sum(const Task& task) { return task.kind == TaskKind::Fold && task.writes.size() == 1; }

// The transport whose rate kernels reach when they access another rank's memory in place.
const TransportRate* find_kernel_transport(const Machine& machine, int level) {
  constexpr std::array<std::string_view, 2> kInKernel = {"tma", "sm"};
  for (const std::string_view via : kInKernel) {
    if (const TransportRate* const rate = find_transport(machine, via, level)) return rate;
  }
  return nullptr;
}

}  // namespace

TaskCosts::TaskCosts(const Plan& plan, const launch::LaunchPlan& launches, const Machine& machine,
                     const ResourceMap& map, const Idealisation& ideal)
    : plan_(plan),
      machine_(machine),
      map_(map),
      ideal_(ideal),
      work_(plan),
      launches_(plan, launches),
      in_16_bits_(plan.allocs.size(), 0) {
  for (const AllocId state : launches.partials16) in_16_bits_[state.index()] = 1;
  routed_ = std::ranges::any_of(
      plan.program.decls, [](const Decl& decl) { return std::holds_alternative<Route>(decl); });
  raises_.resize(plan.tasks.size(), 0);
  for (const Sync& sync : plan.syncs) {
    const Task& from = plan.tasks[sync.from.index()];
    if (rank_of(from) != rank_of(plan.tasks[sync.to.index()])) raises_[sync.from.index()] = 1;
  }
  group();
  flops_.resize(static_cast<std::size_t>(map.ranks), 0);
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    flops_[rank_of(plan.tasks[i]).index()] += shapes_[i].flops;
  }
  for (Group& one : groups_) measure(one);
}

RankId TaskCosts::rank_of(const Task& task) const { return plan_.queues[task.queue.index()].rank; }
RankId TaskCosts::rank_of(const Ref& ref) const { return plan_.allocs[ref.alloc.index()].rank; }
DType TaskCosts::dtype_of(const Ref& ref) const {
  return in_16_bits_[ref.alloc.index()] != 0 ? DType::BF16 : plan_.allocs[ref.alloc.index()].dtype;
}

double TaskCosts::bytes_of(const Ref& ref) const {
  const auto held = static_cast<double>(size_in_bytes(dtype_of(ref)));
  const auto declared = static_cast<double>(size_in_bytes(plan_.allocs[ref.alloc.index()].dtype));
  return work_.bytes_of(ref) * held / declared;
}

const Stmt& TaskCosts::statement_of(const Task& task) const {
  const Nest* const nest = find_nest(plan_.program, task.nest);
  HP_CHECK(nest != nullptr, "a task's nest");
  return nest->stmts[static_cast<std::size_t>(task.stmt)];
}

DType TaskCosts::operand_type(const Task& task) const {
  return find_buffer(plan_.program, statement_of(task).operands.front().buffer)->dtype;
}

Supplier TaskCosts::supplier_of(const Task& task) const {
  const KernelOffer* const kernel = find_offer(task.leaf_kernel);
  return kernel != nullptr && kernel->by_library ? Supplier::Library : Supplier::Own;
}

// The SMs that the schedule gives to the leaf, minus those that its launch reserves or copies with.
std::int64_t TaskCosts::sms_of(const Task& task) const {
  std::int64_t sms = machine_.processor.sms;
  const auto keep = [&](const std::optional<std::int64_t>& most) {
    if (most && *most > 0) sms = std::min(sms, *most);
  };
  for (const Fuse& fuse : plan_.form.fuses) {
    if (std::ranges::find(fuse.nests, task.nest) != fuse.nests.end()) keep(fuse.sm);
  }
  const NestForm* const form = find_nest(plan_.form, task.nest);
  if (form != nullptr) keep(form->leaf.sm);
  const launch::Launch* const launch = launches_.of(TaskId(&task - plan_.tasks.data()));
  if (launch == nullptr) return sms;
  std::int64_t others = launch->reserved_sms;
  for (const launch::Kernel& kernel : launch->kernels) others += kernel.copy_blocks;
  keep(machine_.processor.sms - others);
  return sms;
}

bool TaskCosts::passes_memory(AllocId id) const {
  const Alloc& alloc = plan_.allocs[id.index()];
  return !ideal_.no_round_trips || (alloc.level == Level::Home &&
                                    find_buffer(plan_.program, alloc.buffer)->role != Role::Temp);
}

// Bytes of the reference in the memory of the task's own rank, if it passes through memory.
double TaskCosts::touched(const Task& task, const Ref& ref) const {
  const bool is_own = rank_of(ref) == rank_of(task);
  return is_own && passes_memory(ref.alloc) ? bytes_of(ref) : 0;
}

// Bytes that one read transfers, in the type in which they are sent.
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
    const double crossing = moves ? arriving(task, i) : bytes_of(task.reads[i]);
    told += crossing;
    bytes[{from, to}] += crossing * (moves ? widening(task, i) : readings(id, i, from));
  }
  for (const Ref& ref : task.writes) {
    if (!moves && rank_of(ref) != rank_of(task) && task.kind != TaskKind::Entry &&
        task.kind != TaskKind::Exit) {
      bytes[{rank_of(task), rank_of(ref)}] += bytes_of(ref);
    }
  }
  // The plan states the bytes of a move, unless a route determines them.
  const bool is_told = moves && !routed_ && told > 0;
  const double scale = is_told ? static_cast<double>(task.bytes) / told : 1;
  std::vector<Crossing> crossings;
  for (const auto& [ranks, crossing] : bytes) {
    crossings.push_back({ranks.first, ranks.second, crossing * scale});
  }
  return crossings;
}

// How often an operand on another rank crosses the link: once for each tile that needs it, because
// no cache of the reader holds other ranks' memory, and in whole tiles, however few rows are used.
// On a bus there is one memory for all, so it crosses once.
double TaskCosts::readings(TaskId id, std::size_t read, RankId from) const {
  const Task& task = plan_.tasks[id.index()];
  if (task.kind != TaskKind::Compute || !is_leaf(statement_of(task).leaf, Leaf::Matmul)) return 1;
  const int level = level_between(machine_, from.value, rank_of(task).value);
  if (machine_.levels[static_cast<std::size_t>(level)].kind == LevelKind::Bus) return 1;
  const LeafRate& rate = find_rate(machine_, print(Leaf::Matmul), print(operand_type(task)));
  const TaskWork& shape = shapes_[id.index()];
  const double own = read == 0 ? rate.tile_rows : rate.tile_columns;
  const double tile = read == 0 ? rate.tile_columns : rate.tile_rows;
  if (tile <= 0) return 1;
  const double extent = read == 0 ? shape.rows : shape.columns;
  const double whole = own > 0 ? std::ceil(extent / own) * own / extent : 1;
  return whole * std::ceil((read == 0 ? shape.columns : shape.rows) / tile);
}

// Copy engines move bytes unchanged; a kernel makes a copy that changes the type.
bool TaskCosts::converts(const Task& task) const {
  if (task.kind != TaskKind::Copy || (task.via != Via::Ce && task.via != Via::Tma)) return false;
  return dtype_of(task.reads.front()) != dtype_of(task.writes.front());
}

// The factor between the bytes that cross for a read and those that the plan states. A receiver
// that reads and rounds a part reads it in the type of the source.
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

// True if the receiver of a collective's part rounds it: everywhere if the machine's line says so,
// and where its sums are priced as our own pulls. NCCL moves parts that were rounded before.
bool TaskCosts::crosses_unrounded(const Task& task, int level) const {
  if (launches_.is_by_nccl(TaskId(&task - plan_.tasks.data()))) return false;
  const TransportRate* const rate = find_transport(machine_, "nccl", level);
  if (rate == nullptr || rate->unrounded != 0) return rate != nullptr;
  if (task.collective != CollectiveOp::ReduceScatter) return false;
  std::set<RankId> ranks;
  for (const Ref& read : task.reads) ranks.insert(rank_of(read));
  return collective_samples_of(machine_, CollectiveKind::ReduceScatter, level,
                               static_cast<std::int64_t>(ranks.size()),
                               Supplier::Own) == Supplier::Own;
}

Picoseconds TaskCosts::kernel_starts(TaskId id) const {
  return machine_.processor.kernel_start.scaled(static_cast<double>(launches_.kernels(id)));
}

// True if a copy engine makes the copy, whatever transport its schedule names. If the launch has no
// kernels, it is an engine's where the schedule selects one.
bool TaskCosts::is_by_engine(TaskId id) const {
  const Task& task = plan_.tasks[id.index()];
  if (launches_.of(id) == nullptr) return task.via == Via::Ce && !converts(task);
  return launches_.is_by_engine(id) && (task.via == Via::Ce || launches_.kernels(id) > 0);
}

Activity TaskCosts::transfer(TaskId id) const {
  const Task& task = plan_.tasks[id.index()];
  const RankId to = rank_of(task.writes.front());
  const RankId from = rank_of(task.reads.front());
  const bool is_known = launches_.of(id) != nullptr;
  const bool by_engine = is_by_engine(id);
  TransferCost cost{.via = print(task.via), .from = from, .to = to, .driver = rank_of(task)};
  if (from == to) {
    for (const Ref& ref : task.reads) cost.bytes += touched(task, ref) / 2;
    for (const Ref& ref : task.writes) cost.bytes += touched(task, ref) / 2;
    Activity activity = transfer_activity(machine_, map_, cost);
    if (is_known && !by_engine) activity.start = kernel_starts(id);
    return activity;
  }
  for (const Crossing& crossing : crossings(id)) cost.bytes += crossing.bytes;
  const int level = level_between(machine_, from.value, to.value);
  // A transfer without an SM budget uses every SM.
  const bool by_kernel = converts(task) || (task.via == Via::Ce && !by_engine);
  if (const TransportRate* const rate = find_transport(machine_, "sm", level);
      rate != nullptr && by_kernel) {
    cost.via = "sm";
    cost.sms = machine_.processor.sms;
    if (to == cost.driver && converts(task)) cost.bandwidth = rate->converting;
  } else if (by_engine && find_transport(machine_, "ce", level) != nullptr) {
    cost.via = "ce";
  } else {
    cost.sms = sms_of_move(task.via);
  }
  Activity activity = transfer_activity(machine_, map_, cost);
  // A copy engine beside the SMs also copies the signal. Otherwise a kernel raises the signal, and
  // tasks behind the launch wait for that kernel.
  const bool raises = raises_[id.index()] != 0 && machine_.processor.sms > 1;
  const bool has_launch = is_known && launches_.by(id) == DoneBy::Itself;
  const bool is_beside_kernels = is_known && machine_.processor.sms > 1;
  if (by_engine && is_beside_kernels && cost.bytes <= kShortCopy) {
    activity.start += launches_.follows_engine(id) ? kEngineBehindEngine : kEngineInGraph;
  }
  if (by_engine && raises && (!is_known || launches_.of(id)->raised_by_engine)) {
    activity.start += activity.start;
  } else if (raises && (by_engine || has_launch)) {
    activity.start += machine_.processor.kernel_start;
    if (by_engine) activity.start += kRaisedBehindEngine;
  }
  if (by_kernel && converts(task) && from == cost.driver) {
    activity.start += converted_store_delay(machine_, level);
  }
  // A kernel that reads another rank's memory waits for its first data.
  if (has_launch && !by_engine && from != cost.driver) {
    activity.start += signal_delay(machine_, from, to);
  }
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

// Accesses of a kernel to other ranks' memory load the links at the kernel's pace. The kernel takes
// at least the time that the links need.
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
  if (!continues_launch(id)) activity.start += latency;
}

bool TaskCosts::continues_launch(TaskId id) const {
  const DoneBy by = launches_.by(id);
  return by != DoneBy::Itself && launches_.lead(id) != id;
}

// A move that a kernel of other tasks makes has no launch of its own. If the kernel stores its own
// results, the move uses no SMs of its own either.
Activity TaskCosts::fused_copy(TaskId id) const {
  Activity activity = transfer(id);
  const bool stores = launches_.by(id) == DoneBy::FusedStore;
  if (stores) activity.start = {};
  // What threads store for other ranks arrives no sooner than what other kernels store.
  if (stores && launches_.moves_by_threads(id)) {
    const RankId to = rank_of(plan_.tasks[id.index()].writes.front());
    const RankId from = rank_of(plan_.tasks[id.index()].reads.front());
    if (from != to) {
      activity.start =
          launches_.is_in_data(id)
              ? kInData
              : converted_store_delay(machine_, level_between(machine_, from.value, to.value));
    }
  }
  const std::int64_t blocks = launches_.copy_blocks(id);
  std::erase_if(activity.uses, [&](Use& use) {
    if (map_.list[static_cast<std::size_t>(use.resource)].kind != ResourceKind::Sm) return false;
    use.rate = static_cast<double>(blocks);
    return stores || blocks == 0;
  });
  return activity;
}

Activity TaskCosts::pass(TaskId id) const {
  const Task& task = plan_.tasks[id.index()];
  switch (launches_.by(id)) {
    case DoneBy::Total:
      return added_at_home(id);
    case DoneBy::Rounding:
      return {};
    default:
      break;
  }
  Activity activity = passes_activity(machine_, map_, rank_of(task),
                                      print(dtype_of(task.writes.front())), passes_of(task));
  if (launches_.of(id) != nullptr) activity.start = kernel_starts(id);
  reach_other_ranks(task, activity);
  return activity;
}

Activity TaskCosts::activity_of(TaskId id) const {
  const Task& task = plan_.tasks[id.index()];
  const DoneBy by = launches_.by(id);
  if (by == DoneBy::Nothing) return {};
  if (by == DoneBy::FusedCopy || by == DoneBy::FusedStore) return fused_copy(id);
  Activity activity;
  switch (task.kind) {
    case TaskKind::Entry:
      return activity;
    case TaskKind::Exit:
      if (launches_.agrees_to_end(id)) activity.start = kAgreement;
      return activity;
    case TaskKind::Copy:
      activity = transfer(id);
      break;
    case TaskKind::Compute:
      activity = compute(id);
      activity.start = kernel_starts(id);
      if ((launches_.is_streamed(id) || is_tiled(id)) && launches_.follows_others(id)) {
        activity.start += kBehindOthers;
      }
      reach_other_ranks(task, activity);
      break;
    case TaskKind::Init:
    case TaskKind::Fold:
    case TaskKind::Finalise:
    case TaskKind::Pack:
    case TaskKind::Unpack:
      activity = pass(id);
      if (is_sum(task) && launches_.awaits_engine(id)) activity.start += kSumBehindEngine;
      break;
    case TaskKind::Collective:
      HP_CHECK(false, "a collective is costed with its members");
  }
  if (continues_launch(id)) {
    activity.start = {};
    activity.resident = true;
  }
  return activity;
}

CollectiveCost TaskCosts::collective_cost(const std::vector<TaskId>& members) const {
  const auto count = static_cast<double>(members.size());
  CollectiveCost cost{
      .members = static_cast<std::int64_t>(members.size()),
      .by = launches_.is_by_nccl(members.front()) ? Supplier::Library : Supplier::Own};
  const RankId first = rank_of(plan_.tasks[members.front().index()]);
  double most = 0;  // bytes that enter one member
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
      // NCCL only moves the contributions.
      cost.kind =
          cost.by == Supplier::Library ? CollectiveKind::AllToAll : CollectiveKind::ReduceScatter;
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
  const bool is_unrounded = crosses_unrounded(task, cost.level);
  if (rate != nullptr && (is_unrounded || cost.by == Supplier::Library)) {
    std::vector<double> passes = passes_of_sum(task, cost.by);
    if (is_unrounded && !passes.empty()) own.bandwidth = rate->converting;
    // Unless the machine states `unrounded`, the kernel of its samples makes the passes too.
    if (!is_unrounded || rate->unrounded != 0) own.passes = std::move(passes);
  }
  return collective_activity(machine_, map_, rank_of(task), own);
}

}  // namespace harpe
