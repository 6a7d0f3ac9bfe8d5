#include "exec/cpu/cpu_executor.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "exec/actions/prepare.h"
#include "exec/cpu/checks.h"
#include "exec/cpu/far_puts.h"
#include "exec/cpu/faults.h"
#include "exec/cpu/launch_target.h"
#include "exec/cpu/marking.h"
#include "exec/cpu/network.h"
#include "exec/cpu/prepare_steps.h"
#include "exec/cpu/runner.h"
#include "exec/cpu/tensors.h"
#include "exec/cpu/windows.h"
#include "exec/processes/process_report.h"
#include "plan/text.h"
#include "support/check.h"
#include "support/hash.h"

namespace harpe {
namespace {

using cpu::LaunchSteps;
using cpu::StepWork;
using processes::Partition;
using processes::ProcessGroup;
using processes::ProcessReport;

// A fold's state stays in cache from one source to the next.
constexpr std::int64_t kScratchElements = std::int64_t{1} << 14;

// The plan and its index algebra, at stable addresses: everything prepared points into them.
struct Prepared {
  Plan plan;
  Blocks blocks;
  Partition partition;
  cpu::Windows windows;
  actions::Occupancy occupancy;
  std::vector<std::unique_ptr<std::byte[]>> pieces;  // of scratch
  Products products;
  actions::Scratch scratch = {};

  // Requires: layouts of the plan.
  [[nodiscard]] actions::Setting setting(launch::RefLayouts& layouts) const {
    return {.plan = plan,
            .blocks = blocks,
            .layouts = layouts,
            .bases = windows.bases(),
            .occupancy = occupancy,
            .scratch = scratch,
            .products = products};
  }
};

// Per launch.
using Shares = std::vector<std::vector<actions::SlotShare>>;

// The work of queues; empty for steps of other processes and for what the network does.
struct Work {
  LaunchSteps steps;
  StepWork actions;
  Shares shares;
};

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(std::unique_ptr<Prepared> prepared, Work work, CpuOptions options,
              std::optional<ProcessGroup> group, std::unique_ptr<cpu::Network> network)
      : prepared_(std::move(prepared)),
        shares_(std::move(work.shares)),
        options_(std::move(options)),
        group_(std::move(group)),
        network_(std::move(network)),
        marking_(prepared_->plan, std::move(work.steps), std::move(work.actions),
                 options_.drop_signal_of, prepared_->partition, network_.get()) {}

  [[nodiscard]] Checked<Ok> set_input(const std::string& buffer,
                                      const HostTensor& tensor) override {
    const Buffer* declared = find_buffer(plan().program, buffer);
    HP_CHECK(declared != nullptr, "input `" + buffer + "`");
    HP_CHECK(tensor.shape == shape_of(plan().program, *declared), "shape of `" + buffer + "`");
    launch::RefLayouts layouts(prepared_->plan, prepared_->blocks);
    cpu::scatter(prepared_->setting(layouts), prepared_->partition, buffer, tensor);
    return Ok{};
  }

  [[nodiscard]] Result<RunStats, FaultReport> run(const RunOptions& options) override {
    HP_CHECK(!broken_, "an executor is not run again after a fault");
    prepared_->windows.poison(plan());
    prepared_->windows.clear_numbers();
    broken_ = true;  // until this run has ended
    // No process clears its memory while another writes to it.
    if (group_) HP_REQUIRE_OK(or_fault(group_->wait_for_all()));
    marking_.begin(options.iterations, options.trace);
    const cpu::RunOutcome outcome = run_queues(options);
    ProcessReport report = report_of(outcome);
    if (group_) report = conclude(report, options.wait_limit);
    if (!report.faults.empty()) return std::move(report.faults);
    RunStats stats{.iterations = marking_.durations(),
                   .cpu_time = report.cpu_time,
                   .bytes_moved = report.bytes_moved,
                   .peak_bytes = prepared_->windows.arena_bytes(),
                   .trace = options.trace ? own_events() : std::vector<TraceEvent>(),
                   .network = {},
                   .collectives = {}};
    if (prepared_->partition.has_far()) stats.network = report.network;
    if (group_) HP_REQUIRE_OK(or_fault(gather(stats, options)));
    broken_ = false;
    has_run_ = true;
    return stats;
  }

  [[nodiscard]] Checked<HostTensor> output(const std::string& buffer) const override {
    HP_CHECK(has_run_ && !broken_, "an output is read after a run that succeeded");
    launch::RefLayouts layouts(prepared_->plan, prepared_->blocks);
    return cpu::gather(prepared_->setting(layouts), buffer);
  }

 private:
  [[nodiscard]] const Plan& plan() const { return prepared_->plan; }

  // Meanwhile another thread watches for processes that have exited or stopped.
  [[nodiscard]] cpu::RunOutcome run_queues(const RunOptions& options) {
    std::optional<std::jthread> watch;
    if (group_) watch = group_->watch([this] { network_->give_up(); });
    return cpu::run_queues(marking_, options_, options, network_.get());
  }

  [[nodiscard]] ProcessReport report_of(const cpu::RunOutcome& outcome) const {
    ProcessReport report{.faults = {}, .cpu_time = outcome.cpu_time, .network = {}};
    if (network_) report.network = network_->stats();
    if (!outcome.finished) {
      report.faults = cpu::collect_faults(plan(), prepared_->blocks, marking_, outcome);
      return report;
    }
    for (std::size_t i = 0; i < plan().tasks.size(); ++i) {
      const Task& task = plan().tasks[i];
      const bool moves = task.kind == TaskKind::Copy || task.kind == TaskKind::Collective;
      if (!moves || !prepared_->partition.is_own(plan().queues[task.queue.index()].rank)) continue;
      const launch::LaunchId launch = marking_.launch_of(TaskId(static_cast<std::int64_t>(i)));
      report.bytes_moved += bytes_moved(task, shares_[launch.index()]);
    }
    return report;
  }

  [[nodiscard]] ProcessReport conclude(const ProcessReport& own,
                                       std::chrono::milliseconds wait_limit) {
    const auto answers = group_->conclude(processes::pack(own), own.faults.empty(), wait_limit);
    return processes::merge(answers, own, prepared_->partition);
  }

  // Gives process 0 the times, the events and the outputs of the run.
  [[nodiscard]] Checked<Ok> gather(RunStats& stats, const RunOptions& options) {
    HP_TRY(stats.iterations, group_->longest_of(std::move(stats.iterations)));
    if (options.trace) {
      HP_TRY(stats.trace, group_->events_of_all(std::move(stats.trace)));
    }
    std::vector<std::string> outputs;
    for (const Buffer* const buffer : buffers_of(plan().program)) {
      if (buffer->role == Role::Out) outputs.push_back(buffer->name);
    }
    const transport::Outcome<Ok> mirrored = network_->mirror(plan(), outputs);
    return group_->agree(mirrored.ok() ? std::nullopt
                                       : std::optional(transport::to_diag(mirrored.error())));
  }

  [[nodiscard]] Result<Ok, FaultReport> or_fault(const Checked<Ok>& done) const {
    if (done.ok()) return Ok{};
    Fault fault;
    fault.kind = FaultKind::NetworkFailed;
    fault.rank = prepared_->partition.first_of(prepared_->partition.process);
    fault.signal = render_message(done.error());
    if (group_->lost()) {
      fault.kind = FaultKind::PeerLost;
      fault.rank = prepared_->partition.first_of(*group_->lost());
    }
    return FaultReport{fault};
  }

  [[nodiscard]] std::vector<TraceEvent> own_events() const {
    std::vector<TraceEvent> events = marking_.trace();
    std::erase_if(events, [](const TraceEvent& event) { return !event.task.valid(); });
    return events;
  }

  // Rows that no token chose are not sent.
  static std::int64_t bytes_moved(const Task& task, const std::vector<actions::SlotShare>& shares) {
    double most = 0;
    double used = 0;
    for (const actions::SlotShare& share : shares) {
      const auto elements = static_cast<double>(share.elements);
      most += elements * static_cast<double>(share.capacity);
      used += elements * static_cast<double>(share.used.of(share.capacity));
    }
    if (most == 0) return task.bytes;
    return static_cast<std::int64_t>(static_cast<double>(task.bytes) * (used / most));
  }

  std::unique_ptr<Prepared> prepared_;
  Shares shares_;
  CpuOptions options_;
  std::optional<ProcessGroup> group_;      // if other processes have the other ranks
  std::unique_ptr<cpu::Network> network_;  // likewise
  cpu::Marking marking_;
  bool broken_ = false;
  bool has_run_ = false;
};

Checked<Partition> partition_of(const Plan& plan, const std::optional<processes::Launch>& launch) {
  if (!launch) return Partition::alone(plan.mesh.ranks());
  HP_TRY(const std::int64_t each, processes::ranks_of_each(*launch, plan));
  return Partition{.process = launch->rank,
                   .processes = launch->ranks,
                   .processes_per_host = launch->local_ranks,
                   .ranks_each = each};
}

// The plan with the partial states that kernels leave in 16 bits.
Plan narrowed(Plan plan, const launch::LaunchPlan& launches) {
  for (const AllocId id : launches.partials16) {
    Alloc& alloc = plan.allocs[id.index()];
    alloc.dtype = find_buffer(plan.program, alloc.buffer)->dtype;
  }
  return plan;
}

// Allocates memory and resolves addresses.
Checked<std::unique_ptr<Prepared>> prepare(const Plan& plan, const LaunchSteps& steps,
                                           const Partition& partition, Products products,
                                           std::optional<ProcessGroup>& group) {
  HP_TRY(Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  const cpu::WindowSizes sizes = {
      .numbers = actions::Occupancy::bytes_per_rank(plan, blocks),
      .bounce = cpu::bounce_bytes(plan, partition),
      .signals = partition.is_alone() ? 0 : cpu::map_signals(plan, steps, partition).most_flags};
  HP_TRY(cpu::Windows windows,
         cpu::Windows::make(plan, partition, sizes, group ? &group->exchange() : nullptr));
  actions::Occupancy occupancy(plan, blocks, windows.numbers());
  auto prepared = std::make_unique<Prepared>(Prepared{.plan = plan,
                                                      .blocks = std::move(blocks),
                                                      .partition = partition,
                                                      .windows = std::move(windows),
                                                      .occupancy = std::move(occupancy),
                                                      .pieces = {},
                                                      .products = products});
  prepared->scratch = {
      .reserve =
          [&pieces = prepared->pieces](std::int64_t bytes) {
            pieces.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes)));
            return pieces.back().get();
          },
      .elements = kScratchElements};
  return prepared;
}

void clear_slots(const Prepared& prepared, RankId rank, actions::TaskWork& work) {
  for (const Alloc& alloc : prepared.plan.allocs) {
    if (alloc.rank != rank || alloc.level == Level::Home || !is_floating(alloc.dtype)) continue;
    const std::int64_t elements = alloc.bytes / size_in_bytes(alloc.dtype);
    actions::View view;
    view.data = prepared.windows.bases().address(alloc);
    view.dtype = alloc.dtype;
    work.actions.emplace_back(actions::Fill{
        .to = std::move(view),
        .value = std::numeric_limits<double>::quiet_NaN(),
        .rows =
            actions::Rows(std::vector{elements}, std::vector(1, std::vector{std::int64_t{1}}))});
  }
}

// Tests: CpuOptions::clears_slots.
void clear_at_exits(const Prepared& prepared, Work& work) {
  for (std::size_t queue = 0; queue < work.actions.size(); ++queue) {
    const RankId rank = prepared.plan.queues[queue].rank;
    for (std::size_t at = 0; at < work.actions[queue].size(); ++at) {
      const cpu::Step& step = work.steps.queues[queue][at];
      const bool exits = prepared.plan.tasks[step.task.index()].kind == TaskKind::Exit;
      if (exits && prepared.partition.is_own(rank)) {
        clear_slots(prepared, rank, work.actions[queue][at]);
      }
    }
  }
}

Checked<Work> prepare_work(const Prepared& prepared, const launch::LaunchPlan& launches,
                           LaunchSteps steps) {
  launch::RefLayouts layouts(prepared.plan, prepared.blocks);
  Work work{.steps = std::move(steps), .actions = {}, .shares = {}};
  HP_TRY(work.actions,
         cpu::prepare_steps(prepared.setting(layouts), launches, work.steps, prepared.partition));
  work.shares.resize(launches.launches.size());
  for (std::size_t queue = 0; queue < work.actions.size(); ++queue) {
    for (std::size_t at = 0; at < work.actions[queue].size(); ++at) {
      std::ranges::move(
          work.actions[queue][at].shares,
          std::back_inserter(work.shares[work.steps.queues[queue][at].launch.index()]));
    }
  }
  return work;
}

Checked<std::unique_ptr<cpu::Network>> open_network(const Prepared& prepared,
                                                    const CpuOptions& options,
                                                    ProcessGroup& group) {
  launch::RefLayouts layouts(prepared.plan, prepared.blocks);
  std::vector<QueueId> queue_of;
  for (const Task& task : prepared.plan.tasks) queue_of.push_back(task.queue);
  return cpu::Network::open(
      prepared.partition, prepared.windows, static_cast<std::int32_t>(prepared.plan.queues.size()),
      cpu::prepare_far_puts(prepared.setting(layouts), prepared.partition, prepared.windows),
      queue_of,
      {.provider = options.provider,
       .interface = options.launch->interface,
       .limit = options.wait_limit},
      group.exchange());
}

// If `given` is null, uses the launches of CPU ranks.
Checked<std::unique_ptr<Executor>> make_executor(const Plan& plan, const launch::LaunchPlan* given,
                                                 const CpuOptions& options) {
  HP_TRY(const Partition partition, partition_of(plan, options.launch));
  HP_REQUIRE_OK(cpu::check_size(plan, partition.ranks_each * partition.processes_per_host));
  std::optional<launch::LaunchPlan> own;
  if (given == nullptr) {
    HP_TRY(own, cpu::launches_of(plan, false));
  }
  const launch::LaunchPlan& launches = given == nullptr ? *own : *given;
  HP_REQUIRE_OK(actions::check_buffers(plan.program));
  HP_REQUIRE_OK(cpu::check_reach(plan, partition));
  HP_TRY(LaunchSteps steps, cpu::make_steps(plan, launches));
  std::optional<ProcessGroup> group;
  if (options.launch) {
    HP_TRY(group, ProcessGroup::meet(*options.launch, options.warn));
    HP_REQUIRE_OK(group->compare(hash_text(print_plan(plan) + launches.target)));
  }
  HP_TRY(std::unique_ptr<Prepared> prepared,
         prepare(narrowed(plan, launches), steps, partition, options.products, group));
  HP_TRY(Work work, processes::agreed(group, prepare_work(*prepared, launches, std::move(steps))));
  if (options.clears_slots) clear_at_exits(*prepared, work);
  std::unique_ptr<cpu::Network> network;
  if (group) {
    HP_TRY(network, open_network(*prepared, options, *group));
  }
  return std::unique_ptr<Executor>(std::make_unique<CpuExecutor>(
      std::move(prepared), std::move(work), options, std::move(group), std::move(network)));
}

}  // namespace

Checked<std::unique_ptr<Executor>> make_cpu_executor(const Plan& plan,
                                                     const launch::LaunchPlan& launches,
                                                     const CpuOptions& options) {
  return make_executor(plan, &launches, options);
}

Checked<std::unique_ptr<Executor>> make_cpu_executor(const Plan& plan, const CpuOptions& options) {
  return make_executor(plan, nullptr, options);
}

}  // namespace harpe
