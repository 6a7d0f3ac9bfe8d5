#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "offers/gpu_kernels.h"
#include "sim/task_costs.h"
#include "support/check.h"

// The costs of kernels that multiply: of a launch's computes together, and the share of each.
namespace harpe {
namespace {

// Until memory has brought the first operands, and from the last ones until sums are stored. Fitted
// to `one_shot` of 256 rows and to what memory bounds on 2 H200 (docs/simulator.md).
constexpr Picoseconds kFill = from_microseconds(3);

// The part of the best rate that tensor cores keep up in plans.
constexpr double kOfBestRate = 0.92;

// What adding one more part's state to a pair's state takes, fitted to decode on 2 H200.
constexpr Picoseconds kJoin = from_microseconds(0.17);

double points_of(const TaskWork& work) {
  return work.batch * work.rows * work.columns * work.depth;
}

// True if the last task only adds to results that other tasks of the launch have begun.
bool adds_to_others(std::span<const TaskPart> parts) {
  return parts.back().target->mode == WriteMode::Add;
}

bool has_panels(const launch::Launch* launch) {
  return launch != nullptr && std::ranges::any_of(launch->kernels, [](const auto& kernel) {
           return !kernel.panels.empty();
         });
}

bool stores_at_peers(const launch::Launch* launch) {
  return launch != nullptr && std::ranges::any_of(launch->kernels, [](const auto& kernel) {
           return !kernel.fused_stores.empty();
         });
}

// How much longer a kernel that streams weights takes because its last rows come late: until they
// come, it loads only the weights that it has room for. Fitted to 13 plans of up to 256 rows on 2
// H200 (docs/simulator.md); at most its time alone.
Picoseconds delay_of_stream(std::span<const TaskPart> parts, Picoseconds by_itself) {
  constexpr double kUs = 0.5;
  constexpr double kUsOfRow = 0.05;
  double us = kUs;
  for (const TaskPart& part : parts) us += part.ends_panel ? kUsOfRow * part.work.shape.rows : 0;
  return std::min(by_itself, from_microseconds(us));
}

}  // namespace

// Groups computes of one launch and statement.
void TaskCosts::group() {
  shapes_.resize(plan_.tasks.size());
  group_.resize(plan_.tasks.size(), -1);
  shares_.resize(plan_.tasks.size(), 1);
  held_.resize(plan_.tasks.size());
  late_.resize(plan_.tasks.size());
  panel_.resize(plan_.tasks.size());
  std::map<std::size_t, std::int32_t> last;  // by launch
  for (const TaskId id : launches_.order()) {
    const std::size_t i = id.index();
    const Task& task = plan_.tasks[i];
    if (task.kind != TaskKind::Compute) continue;
    shapes_[i] = work_.of(task);
    if (points_of(shapes_[i]) == 0) continue;
    std::int32_t at = static_cast<std::int32_t>(groups_.size());
    if (launches_.by(id) == DoneBy::Kernel)
      at = last.try_emplace(launches_.at(id), at).first->second;
    if (at < std::ssize(groups_)) {
      const Task& first = plan_.tasks[groups_[static_cast<std::size_t>(at)].tasks.front().index()];
      if (&statement_of(first) != &statement_of(task)) {
        at = last[launches_.at(id)] = static_cast<std::int32_t>(groups_.size());
      }
    }
    if (at == std::ssize(groups_)) groups_.emplace_back();
    Group& group = groups_[static_cast<std::size_t>(at)];
    group.tasks.push_back(id);
    group.masked = group.masked || shapes_[i].masked;
    group_[i] = at;
  }
}

LaunchWork TaskCosts::work_of(const Group& group, std::span<const TaskPart> parts) const {
  const TaskId first = group.tasks.front();
  const launch::Launch* const launch = launches_.of(first);
  if (!has_panels(launch)) return work_side_by_side(parts);
  const RankId rank = rank_of(plan_.tasks[first.index()]);
  const PlaceBytes bytes = [&](const launch::Place& place) {
    const Alloc& alloc = plan_.allocs[place.alloc.index()];
    if (alloc.rank != rank || !passes_memory(place.alloc)) return 0.0;
    const DType dtype = in_16_bits_[place.alloc.index()] != 0 ? DType::BF16 : alloc.dtype;
    double elements = 1;
    for (const Interval& side : place.span) elements *= static_cast<double>(side.size());
    return elements * static_cast<double>(size_in_bytes(dtype));
  };
  const Task& task = plan_.tasks[first.index()];
  if (is_leaf(statement_of(task).leaf, Leaf::Matmul)) {
    return gemm_work(launch->kernels, parts, launches_.is_streamed(first), machine_.processor,
                     bytes);
  }
  return attention_work(launch->kernels, parts, group.masked, bytes);
}

void TaskCosts::measure(Group& group) {
  const TaskId first = group.tasks.front();
  const std::string& leaf = statement_of(plan_.tasks[first.index()]).leaf;
  const std::string_view dtype = print(operand_type(plan_.tasks[first.index()]));
  std::vector<TaskPart> parts;
  for (const TaskId task : group.tasks) parts.push_back(part_of(task));
  number_panels(parts);
  const LaunchWork work = work_of(group, parts);
  group.activity = leaf_activity(first, work, group.masked);
  if (work.joined > 0) take(group.activity, group.activity.work + kJoin.scaled(work.joined));
  const bool sends = stores_at_peers(launches_.of(first));
  const std::optional<Tickets> tickets = tickets_of(group, parts);
  const bool is_slow = sends && tickets && !launches_.moves_by_threads(first) && !ideal_.tile_edges;
  group.tiled = tickets && launches_.of(first)->kernels.front().name == kGemmSm90;
  if (group.tiled) take(group.activity, tiled_time(*tickets, group, work));
  price_streams(group, work);
  if (sends) group.tickets = tickets;
  for (std::size_t i = 0; i < parts.size(); ++i) panel_[group.tasks[i].index()] = parts[i].panel;
  if (parts.size() == 1) {
    if (is_slow) slow_down(group);
    return;
  }
  const double waves = ideal_.tile_edges ? 1
                                         : leaf_waves(machine_, leaf, dtype, work.shape,
                                                      sms_of(plan_.tasks[first.index()]));
  std::vector<double> shares = shares_of(parts, waves);
  if (sends && launches_.is_streamed(first)) {
    // The kernel makes all sums at its end, so that no sum is sent earlier.
    std::ranges::fill(shares, 0.0);
    shares.front() = 1.0;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) shares_[group.tasks[i].index()] = shares[i];
  if (!group.tiled) measure_alone(group, parts);
  if (is_slow) slow_down(group);
  if (!ideal_.tile_edges && (sends || launches_.waits_inside(first))) {
    hold_tiles(group, parts, tickets);
  }
}

const LeafRate& TaskCosts::rate_of(const Task& task) const {
  return find_rate(machine_, statement_of(task).leaf, print(operand_type(task)), supplier_of(task));
}

// What a GEMM's thread blocks take for their tickets, besides the start of the kernel, or what its
// bytes take. Large GEMMs let the clock fall below that of the best rate.
Picoseconds TaskCosts::tiled_time(const Tickets& tickets, const Group& group,
                                  const LaunchWork& work) const {
  const Task& first = plan_.tasks[group.tasks.front().index()];
  const LeafRate& rate = rate_of(first);
  const double clock = clock_of(rate);
  const auto stages = static_cast<std::int64_t>(std::ceil(work.shape.depth / kGemmStage));
  const double waves = std::ceil(tickets.steps(0, tickets.panels() - 1));
  const double further = std::max(0.0, std::min(work.in_step, waves) - 1);
  const double memory = (work.shape.bytes + further * work.again) /
                        (machine_.processor.memory_bandwidth * rate.memory_share);
  const double computing = flops_[rank_of(first).index()] / (kOfBestRate * rate.peak);
  const Picoseconds blocks =
      from_seconds(tickets.clocks(stages) / (clock * clock_under_load(tickets.tile(), computing))) -
      machine_.processor.kernel_start;
  const Picoseconds least = std::max(blocks, kFill + from_seconds(memory));
  const double steps = tickets.steps_of_copiers();
  if (steps == 0) return least;
  const Picoseconds tile = blocks.scaled(1, tickets.steps(0, tickets.panels() - 1));
  const Picoseconds copies = from_seconds(copied_clocks(copied_bytes(group)) / clock);
  return std::max(least, copies + tile.scaled(steps));
}

// Thread blocks that stream K take at least as long as they multiply, if all of them are busy from
// their first load to the sum of their parts. Where they are few, it is more than the rate of whole
// GEMMs says. Pairs of them take as long as their loads, which that rate does not have.
void TaskCosts::price_streams(Group& group, const LaunchWork& work) const {
  const std::optional<Streams> streams = read_streams(launches_.variant(group.tasks.front()));
  if (!streams) return;
  const LeafRate& rate = rate_of(plan_.tasks[group.tasks.front().index()]);
  const double share =
      static_cast<double>(streams->blocks()) / static_cast<double>(machine_.processor.sms);
  const Picoseconds least =
      kFill + from_seconds(work.shape.flops / (kOfBestRate * rate.peak * share));
  if (streams->cluster == 1) {
    if (least > group.activity.work) take(group.activity, least);
    return;
  }
  constexpr Picoseconds kSums = from_microseconds(2);
  const auto columns = static_cast<double>(streams->columns);
  const auto pairs = static_cast<double>(streams->pairs());
  const double stages = std::ceil(std::ceil(work.shape.columns / columns) *
                                  std::ceil(work.shape.depth / kGemmStage) / pairs);
  const double each = pair_clocks(static_cast<double>(streams->rows), columns,
                                  static_cast<double>(streams->stages), pairs);
  const Picoseconds loads = kFill + kSums + from_seconds(stages * each / clock_of(rate));
  take(group.activity, std::max(least, loads));
}

// The clock at which the tensor cores keep up their part of the best rate.
double TaskCosts::clock_of(const LeafRate& rate) const {
  constexpr double kFlopsPerClock = 4096;  // of an SM
  return kOfBestRate * rate.peak / (kFlopsPerClock * static_cast<double>(machine_.processor.sms));
}

// What the launch's fused copies store at other ranks.
double TaskCosts::copied_bytes(const Group& group) const {
  double bytes = 0;
  for (const TaskId id : launches_.of(group.tasks.front())->does) {
    if (launches_.by(id) != DoneBy::FusedCopy) continue;
    for (const Crossing& crossing : crossings(id)) bytes += crossing.bytes;
  }
  return bytes;
}

// Slows down a kernel that stores for other ranks by TMA. While stores fill the links, the copy
// engine brings operands later. What ranks store for each other arrives as late as the last tiles
// that it is added to. The stores of totals wait for it too, which costs most of this time by
// itself. Fitted to plans of 2 and 4 GPUs (docs/simulator.md).
void TaskCosts::slow_down(Group& group) const {
  constexpr double kOfLinks = 0.1;
  constexpr double kStandstillUs = 4;
  constexpr double kStandstillOfTotalsUs = 1;
  constexpr double kOfWork = 0.3;  // at most
  const TaskId first = group.tasks.front();
  double sent = 0;
  bool has_totals = false;
  for (const TaskId id : launches_.of(first)->does) {
    if (launches_.by(id) != DoneBy::FusedStore) continue;
    sent += fused_copy(id).work.seconds();
    has_totals = has_totals || !launches_.totals(id).empty();
  }
  const Picoseconds work = group.activity.work;
  const Picoseconds standstill =
      from_microseconds(has_totals ? kStandstillOfTotalsUs : kStandstillUs);
  const Picoseconds stands = std::min(standstill, work.scaled(kOfWork));
  take(group.activity, work + from_seconds(kOfLinks * sent) + stands);
}

// Tasks one after the other in one launch take no longer than in a launch each.
void TaskCosts::measure_alone(Group& group, std::span<const TaskPart> parts) {
  Picoseconds all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == 0 || parts[i].work != parts[i - 1].work) {
      group.last = leaf_activity(group.tasks[i], parts[i].work, group.masked).work;
    }
    all += group.last;
  }
  if (all < group.activity.work) take(group.activity, all);
}

// What holding whole tiles adds to the tasks' shares of the launch's time. A block that holds a
// tile of a task that has not arrived does not help with other tiles. From the task's arrival on,
// the launch takes at least as long as one block takes for its tickets from the task's first one
// on, less what it has multiplied of that tile's K chunks before. A task is not held if the next
// one has as many steps left. A panel's own last tiles end with a wave, when blocks are halfway
// through tiles of others (`late_`).
void TaskCosts::hold_tiles(const Group& group, std::span<const TaskPart> parts,
                           const std::optional<Tickets>& tickets) {
  const std::size_t last = parts.size() - 1;
  if (!tickets) {
    const bool is_streamed = launches_.is_streamed(group.tasks.front());
    if (!is_streamed && adds_to_others(parts)) return;
    // However many SMs are free by then. Streams begin anywhere in K, so they wait for all of it.
    const Picoseconds panel =
        std::min(group.last.scaled(1 / (1 - parts[last].multiplied)), group.activity.work);
    held_[group.tasks[last].index()] =
        panel + (is_streamed ? delay_of_stream(parts, panel) : Picoseconds{});
    return;
  }
  const std::size_t panels = tickets->panels() - 1;
  const Picoseconds tile = group.activity.work.scaled(1, tickets->steps(0, panels));
  const auto steps_left = [&](std::size_t i) {
    return tickets->steps(parts[i].panel, panels) - parts[i].multiplied;
  };
  double done = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    const auto at = group.tasks[i].index();
    const double steps = steps_left(i);
    if (i > 0 && (i == last || steps > steps_left(i + 1))) held_[at] = tile.scaled(steps);
    done += shares_[at];
    if (!parts[i].ends_panel) continue;
    const Picoseconds even = group.activity.work.scaled(done);
    const Picoseconds whole = tile.scaled(tickets->steps(0, parts[i].panel));
    if (whole > even) late_[at] = whole - even;
  }
}

// None where the kernel takes no tickets.
std::optional<Tickets> TaskCosts::tickets_of(const Group& group,
                                             std::span<const TaskPart> parts) const {
  const TaskId first = group.tasks.front();
  const launch::Launch* const launch = launches_.of(first);
  if (!has_panels(launch) || !is_leaf(statement_of(plan_.tasks[first.index()]).leaf, Leaf::Matmul))
    return std::nullopt;
  const std::optional<Tiling> tiling = read_tiling(launch->kernels.front().variant);
  if (!tiling) return std::nullopt;
  const std::int64_t cluster = tiling->tile.cluster;
  Tickets tickets(*tiling, sms_of(plan_.tasks[first.index()]) / cluster,
                  launch->kernels.front().copy_blocks / cluster);
  for (const TaskPart& part : parts) {
    const LeafShape& shape = part.work.shape;
    if (part.ends_panel) tickets.add(shape.batch, shape.rows, shape.columns);
  }
  return tickets;
}

// Changes the time to `work` for the same bytes, at no more than the memory's bandwidth.
void TaskCosts::take(Activity& activity, Picoseconds work) const {
  const double pace = activity.work.seconds() / work.seconds();
  for (Use& use : activity.uses) {
    if (map_.list[static_cast<std::size_t>(use.resource)].kind == ResourceKind::Memory) {
      use.rate = std::min(use.rate * pace, machine_.processor.memory_bandwidth);
    }
  }
  activity.work = work;
}

// The task's work as if it were alone, with its own reads.
TaskPart TaskCosts::part_of(TaskId id) const {
  const Task& task = plan_.tasks[id.index()];
  const TaskWork& own = shapes_[id.index()];
  TaskPart part{.work = {.shape = {.batch = own.batch,
                                   .rows = own.rows,
                                   .columns = own.columns,
                                   .depth = own.depth,
                                   .flops = own.flops}},
                .target = &task.writes.front()};
  for (const Ref& ref : task.reads) part.work.shape.bytes += touched(task, ref);
  for (const Ref& ref : task.writes) {
    const double bytes = touched(task, ref);
    part.work.shape.bytes += bytes;
    if (ref.mode == WriteMode::Add) part.work.carried += bytes;
  }
  part.work.shape.bytes += part.work.carried;
  const auto elements = [&](const Ref& ref) {
    return bytes_of(ref) / static_cast<double>(size_in_bytes(dtype_of(ref)));
  };
  if (task.reads.size() > 1) {
    part.row_elements = elements(task.reads[0]);
    part.column_elements = elements(task.reads[1]);
  }
  return part;
}

Activity TaskCosts::compute(TaskId id) const {
  const std::int32_t at = group_[id.index()];
  if (at < 0) return launch_activity(machine_);
  Activity activity = groups_[static_cast<std::size_t>(at)].activity;
  activity.work = activity.work.scaled(shares_[id.index()]);
  return activity;
}

bool TaskCosts::is_tiled(TaskId id) const {
  const std::int32_t at = group_[id.index()];
  return at >= 0 && groups_[static_cast<std::size_t>(at)].tiled;
}

double TaskCosts::last_wave(std::span<const TaskId> tasks) const {
  const std::int32_t at = group_[tasks.front().index()];
  if (at < 0 || !groups_[static_cast<std::size_t>(at)].tickets) {
    return 1 / static_cast<double>(tasks.size());
  }
  const auto panel = [&](TaskId id) { return panel_[id.index()]; };
  const auto [first, last] = std::ranges::minmax(tasks, {}, panel);
  const Tickets& tickets = *groups_[static_cast<std::size_t>(at)].tickets;
  return 1 / std::max(1.0, tickets.steps(panel(first), panel(last)));
}

double TaskCosts::waves(TaskId id) const {
  const std::int32_t at = group_[id.index()];
  if (at < 0 || !groups_[static_cast<std::size_t>(at)].tickets) return 1;
  const Tickets& tickets = *groups_[static_cast<std::size_t>(at)].tickets;
  return tickets.steps(0, tickets.panels() - 1);
}

bool TaskCosts::is_last(TaskId id) const {
  const std::int32_t at = group_[id.index()];
  return at >= 0 && groups_[static_cast<std::size_t>(at)].tasks.back() == id;
}

// Ranks do much the same: what was priced for one rank is moved to another.
Activity TaskCosts::leaf_activity(TaskId id, const LaunchWork& work, bool masked) {
  const Task& task = plan_.tasks[id.index()];
  const LeafShape& shape = work.shape;
  const DType dtype = operand_type(task);
  const auto [known, is_new] =
      leaves_.try_emplace(LeafKey{statement_of(task).leaf, dtype,
                                  std::array{shape.batch, shape.rows, shape.columns, shape.depth,
                                             shape.flops, shape.bytes, work.carried},
                                  masked, sms_of(task), supplier_of(task)});
  if (is_new) {
    known->second = compute_activity(machine_, map_, rank_of(task),
                                     {.leaf = statement_of(task).leaf,
                                      .dtype = print(dtype),
                                      .shape = shape,
                                      .carried = work.carried,
                                      .causal = masked,
                                      .sms = sms_of(task),
                                      .by = supplier_of(task)});
  }
  Activity activity = known->second;
  for (Use& use : activity.uses) {
    const Resource& resource = map_.list[static_cast<std::size_t>(use.resource)];
    use.resource = find_resource(map_, resource.kind, rank_of(task));
  }
  return activity;
}

}  // namespace harpe
