#include "exec/cuda/executor/cuda_executor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <thread>
#include <utility>

#include "exec/cuda/executor/checks.h"
#include "exec/cuda/executor/executor_tools.h"
#include "exec/cuda/executor/gpu_faults.h"
#include "exec/cuda/executor/prepared.h"
#include "exec/cuda/executor/rank_reports.h"
#include "exec/cuda/executor/rank_run.h"
#include "exec/cuda/executor/timeline.h"
#include "exec/cuda/executor/together.h"
#include "exec/cuda/runtime/current_device.h"
#include "exec/cuda/target/check_tasks.h"
#include "exec/cuda/target/launch_target.h"
#include "exec/takes_turns.h"
#include "launch/make_launches.h"
#include "plan/text.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/threads.h"

namespace harpe {
namespace {

using cuda::CudaError;
using cuda::Prepared;
using cuda::RankProgram;
using cuda::RankReport;
using cuda::RankRun;
using processes::agreed;
using processes::ProcessGroup;

// Large graphs take long to prepare, during which NCCL's ranks wait for each other.
constexpr std::chrono::minutes kToMeet{5};

// Only the last of these executions counts.
constexpr std::int64_t kTraced = 4;

class CudaExecutor final : public Executor, public TakesTurns {
 public:
  CudaExecutor(std::unique_ptr<Prepared> prepared, std::vector<RankProgram> programs,
               std::optional<ProcessGroup> group, std::chrono::milliseconds wait_limit)
      : prepared_(std::move(prepared)),
        programs_(std::move(programs)),
        group_(std::move(group)),
        wait_limit_(wait_limit) {}
  CudaExecutor(const CudaExecutor&) = delete;
  CudaExecutor& operator=(const CudaExecutor&) = delete;
  // Other ranks may still read this rank's outputs. Does not wait for processes that have exited.
  ~CudaExecutor() override {
    if (group_ && !broken_) static_cast<void>(prepared_->peers.leave(group_->exchange()));
  }

  [[nodiscard]] Checked<Ok> set_input(const std::string& buffer,
                                      const HostTensor& tensor) override {
    const Buffer* declared = find_buffer(plan().program, buffer);
    HP_CHECK(declared != nullptr, "input `" + buffer + "`");
    HP_CHECK(tensor.shape == shape_of(plan().program, *declared), "shape of `" + buffer + "`");
    cuda::RankLibraries here(prepared_->of_rank.size(), nullptr);
    for (const RankProgram& program : programs_) {
      const auto rank = static_cast<std::size_t>(program.rank());
      here[rank] = prepared_->of_rank[rank];
    }
    launch::RefLayouts layouts(prepared_->plan, prepared_->blocks);
    return cuda::scatter(prepared_->setting(layouts), here, buffer, tensor);
  }

  [[nodiscard]] Result<RunStats, FaultReport> run(const RunOptions& options) override {
    return run_in_turns({}, options);
  }

  [[nodiscard]] Result<RunStats, FaultReport> run_in_turns(std::span<Executor* const> others,
                                                           const RunOptions& options) override {
    const Turns turns = turns_with(others);
    HP_TRY(std::vector<RankRun> runs, begin(turns, options));
    FaultReport faults = play(turns, runs);
    if (!faults.empty()) return faults;
    Checked<RunStats> stats = stats_of(runs);
    if (!stats.ok()) return not_ready(programs_.front().rank(), stats.error());
    if (options.trace) {
      HP_TRY(cuda::Timeline timeline, trace());
      stats->trace = std::move(timeline.events);
      stats->kernels = std::move(timeline.kernels);
      stats->clock_uncertainty = timeline.uncertainty;
    }
    end(turns);
    return std::move(stats).value();
  }

  [[nodiscard]] Result<double, FaultReport> time_in_graph(
      std::span<Executor* const> others, std::int64_t count,
      std::chrono::milliseconds wait_limit) override {
    constexpr std::int64_t kReplays = 3;  // the first waits for ranks that begin later
    const Turns turns = turns_with(others);
    HP_TRY(std::vector<RankRun> runs,
           begin(turns, {.iterations = kReplays, .wait_limit = wait_limit}));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Checked<cuda::Graph> chain = chain_of(turns, i, count);
      if (!chain.ok()) return not_ready(programs_[i].rank(), chain.error());
      runs[i].chain = std::move(chain).value();
    }
    FaultReport faults = play(turns, runs);
    if (!faults.empty()) return faults;
    const Checked<RunStats> stats = stats_of(runs);
    if (!stats.ok()) return not_ready(programs_.front().rank(), stats.error());
    end(turns);
    const auto all = stats->iterations[1] + stats->iterations[2];
    return std::chrono::duration<double, std::micro>(all).count() / static_cast<double>(2 * count);
  }

  [[nodiscard]] Checked<HostTensor> output(const std::string& buffer) const override {
    HP_CHECK(has_run_ && !broken_, "an output is read after a run that succeeded");
    launch::RefLayouts layouts(prepared_->plan, prepared_->blocks);
    return cuda::gather(prepared_->setting(layouts), prepared_->of_rank, buffer);
  }

  [[nodiscard]] std::int64_t allocated_bytes() const override {
    std::int64_t most = 0;
    for (const RankProgram& program : programs_) {
      most = std::max(most, program.device().allocated_bytes());
    }
    return most;
  }

 private:
  using Turns = std::vector<CudaExecutor*>;  // this one first

  [[nodiscard]] const Plan& plan() const { return prepared_->plan; }

  [[nodiscard]] Turns turns_with(std::span<Executor* const> others) {
    HP_CHECK(others.empty() || !group_, "executors of several processes take no turns");
    Turns turns = {this};
    for (Executor* const other : others) {
      turns.push_back(dynamic_cast<CudaExecutor*>(other));
      HP_CHECK(turns.back() != nullptr && turns.back()->programs_.size() == programs_.size(),
               "executors that take turns are alike");
    }
    return turns;
  }

  // Marks all executors broken until `end`.
  [[nodiscard]] static Result<std::vector<RankRun>, FaultReport> begin(const Turns& turns,
                                                                       const RunOptions& options) {
    std::vector<RankRun> first;
    for (CudaExecutor* const each : turns) {
      HP_CHECK(!each->broken_, "an executor is not run again after a fault");
      HP_CHECK(options.wait_limit == each->wait_limit_,
               "kernels were made for another limit of waits");
      each->broken_ = true;
      std::vector<RankRun> runs(each->programs_.size());
      std::optional<FaultReport> unready = each->all_ready(options, runs);
      if (unready) return *std::move(unready);
      each->is_captured_ = true;
      if (first.empty()) first = std::move(runs);
    }
    return first;
  }

  static void end(const Turns& turns) {
    for (CudaExecutor* const each : turns) {
      each->broken_ = false;
      each->has_run_ = true;
    }
  }

  // A rank's executions as one graph.
  [[nodiscard]] Checked<cuda::Graph> chain_of(const Turns& turns, std::size_t at,
                                              std::int64_t count) const {
    std::vector<std::optional<cuda::CapturedGraph>> links(turns.size());
    const cuda::CurrentDevice current(programs_[at].device());
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const RankProgram& program = turns[i]->programs_[at];
      if (program.is_one_kernel()) continue;
      HP_TRY(links[i], program.capture_apart(wait_limit_));
    }
    const cuda::Stream& origin = programs_[at].origin();
    HP_TRY(cuda::GraphCapture capture, cuda::GraphCapture::begin(programs_[at].device(), origin));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto turn = static_cast<std::size_t>(i) % turns.size();
      const Result<Ok, CudaError> added = links[turn] ? links[turn]->add_to_capture(origin.handle())
                                                      : turns[turn]->programs_[at].replay(origin);
      if (!added.ok()) return to_diag(added.error());
    }
    return capture.end();
  }

  // Prepares all ranks, those of other processes included: no rank clears memory that another still
  // reads, or starts its waits while another still prepares.
  [[nodiscard]] std::optional<FaultReport> all_ready(const RunOptions& options,
                                                     std::vector<RankRun>& runs) {
    if (group_) {
      const Checked<Ok> is_idle = group_->wait_for_all();
      if (!is_idle.ok()) return not_ready(group_->rank(), is_idle.error());
    }
    std::optional<cuda::FirstFailure> failure = cuda::run_together(
        programs_.size(), kToMeet,
        [&](std::size_t at) { return ready(programs_[at], options, runs[at]); },
        [&] { prepared_->communicators.abort(); });
    if (group_) {
      const auto own = failure ? std::optional(failure->why) : std::nullopt;
      const Checked<Ok> is_agreed = group_->agree(own);
      if (!is_agreed.ok()) failure = {.which = 0, .why = is_agreed.error()};
    }
    if (!failure) return std::nullopt;
    return not_ready(programs_[failure->which].rank(), failure->why);
  }

  // Replays on all ranks in parallel; empty without faults.
  [[nodiscard]] FaultReport play(const Turns& turns, std::vector<RankRun>& runs) {
    replay_on_all(turns, runs);
    FaultReport faults;
    for (CudaExecutor* const each : turns) {
      std::vector<RankRun> of_others(runs.size());  // `runs` are the first one's alone
      FaultReport found =
          cuda::collect_gpu_faults(each->plan(), each->prepared_->blocks, each->prepared_->launches,
                                   each->reports_of(each == this ? runs : of_others));
      faults.insert(faults.end(), found.begin(), found.end());
    }
    return faults;
  }

  // If a GPU or another process fails, all other ranks stop waiting for it.
  void replay_on_all(const Turns& turns, std::vector<RankRun>& runs) {
    std::atomic<bool> is_stopped = false;  // no more executions are enqueued
    std::atomic<bool> is_given_up = false;
    const auto stop = [&] {
      is_stopped = true;
      if (is_given_up.exchange(true)) return;
      for (const CudaExecutor* const each : turns) {
        for (const RankProgram& program : each->programs_) static_cast<void>(program.give_up());
        each->prepared_->communicators.abort();
      }
    };
    const std::jthread watch = group_ ? group_->watch(stop) : std::jthread();
    const std::jthread network = watch_network(stop);
    const std::jthread waits = watch_waits(turns, is_stopped);
    run_in_threads(programs_.size(), [&](std::size_t i) {
      std::vector<const RankProgram*> programs;
      for (const CudaExecutor* const each : turns) programs.push_back(&each->programs_[i]);
      runs[i].go(programs, is_stopped);
      if (runs[i].end) stop();
    });
  }

  // While the result lives, another thread calls `stop` once a proxy has failed.
  [[nodiscard]] std::jthread watch_network(std::function<void()> stop) const {
    constexpr std::chrono::milliseconds kLook{20};
    const cuda::Network* const network = prepared_->network.get();
    if (network == nullptr) return {};
    return start_thread([network, stop = std::move(stop), kLook](const std::stop_token& end) {
      while (!end.stop_requested() && !network->error()) std::this_thread::sleep_for(kLook);
      if (!end.stop_requested()) stop();
    });
  }

  // Once a wait has failed, further executions would do nothing useful, and NCCL's kernels, which
  // wait without a limit, must be aborted.
  [[nodiscard]] static std::jthread watch_waits(const Turns& turns, std::atomic<bool>& is_stopped) {
    constexpr std::chrono::milliseconds kLook{5};
    return start_thread([turns, &is_stopped, kLook](const std::stop_token& end) {
      while (!end.stop_requested()) {
        std::this_thread::sleep_for(kLook);
        if (std::ranges::none_of(turns, &CudaExecutor::has_failed)) continue;
        is_stopped = true;
        for (const CudaExecutor* const each : turns) each->prepared_->communicators.abort();
      }
    });
  }

  [[nodiscard]] bool has_failed() const {
    return std::ranges::any_of(programs_, [&](const RankProgram& program) {
      return prepared_->peers.page(program.rank()).has_fault();
    });
  }

  // Runs after the executions whose times count, which contain no timestamps.
  [[nodiscard]] Result<cuda::Timeline, FaultReport> trace() {
    std::vector<RankRun> runs(programs_.size());
    const auto before = agreed(group_, ready_to_trace(runs));
    if (!before.ok()) return not_ready(programs_.front().rank(), before.error());
    FaultReport faults = play({this}, runs);
    if (!faults.empty()) return faults;
    Checked<cuda::Timeline> timeline = whole(agreed(group_, timeline_since(*before)));
    if (!timeline.ok()) return not_ready(programs_.front().rank(), timeline.error());
    return std::move(timeline).value();
  }

  [[nodiscard]] Checked<std::vector<cuda::ClockOffset>> ready_to_trace(
      std::vector<RankRun>& runs) const {
    std::vector<cuda::ClockOffset> offsets;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      runs[i].is_traced = true;
      runs[i].stamps = Timestamps(kTraced);
      HP_TRY(runs[i].ends, events_for(programs_[i], kTraced));
      HP_TRY(const cuda::ClockOffset offset, programs_[i].trace().look(programs_[i].origin()));
      offsets.push_back(offset);
    }
    return offsets;
  }

  // For the ranks of this process.
  [[nodiscard]] Checked<cuda::Timeline> timeline_since(
      const std::vector<cuda::ClockOffset>& before) const {
    cuda::Timeline timeline;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      const RankProgram& program = programs_[i];
      HP_TRY(const cuda::ClockOffset after, program.trace().look(program.origin()));
      HP_TRY(const cuda::RankTimes times, program.trace().read());
      const cuda::ClockFit clock{.before = before[i], .after = after};
      const cuda::TracedLaunches rank{.plan = plan(),
                                      .launch_plan = prepared_->launches,
                                      .pages = prepared_->pages,
                                      .launches = program.launches()};
      const std::vector<TraceEvent> events = cuda::events_of(rank, times, clock);
      timeline.events.insert(timeline.events.end(), events.begin(), events.end());
      const std::vector<KernelEvent> kernels = cuda::kernels_of(rank, times, clock);
      timeline.kernels.insert(timeline.kernels.end(), kernels.begin(), kernels.end());
      // The times of each of two ranks may be off by this much.
      timeline.uncertainty =
          std::max(timeline.uncertainty, std::chrono::nanoseconds(2 * clock.uncertainty()));
    }
    return timeline;
  }

  // Adds the ranks of other processes, which share the host's clock.
  [[nodiscard]] Checked<cuda::Timeline> whole(Checked<cuda::Timeline> own) {
    HP_TRY(cuda::Timeline timeline, std::move(own));
    if (group_) {
      HP_TRY(timeline.events, group_->events_of_all(std::move(timeline.events)));
      HP_TRY(timeline.kernels, group_->events_of_all(std::move(timeline.kernels)));
      HP_TRY(const auto uncertainty, group_->longest_of({timeline.uncertainty}));
      timeline.uncertainty = uncertainty.front();
    }
    return cuda::from_the_first(std::move(timeline));
  }

  [[nodiscard]] static Checked<std::vector<cuda::Event>> events_for(const RankProgram& program,
                                                                    std::int64_t iterations) {
    std::vector<cuda::Event> events;
    for (std::int64_t i = 0; i <= iterations; ++i) {
      HP_TRY(cuda::Event event, cuda::Event::create(program.device()));
      events.push_back(std::move(event));
    }
    return events;
  }

  [[nodiscard]] std::vector<RankReport> reports_of(std::vector<RankRun>& runs) {
    std::vector<RankReport> reports;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      reports.push_back(
          cuda::report_of(prepared_->peers, programs_[i].rank(), std::move(runs[i].end)));
      if (runs[i].was_stopped) reports.back().is_poisoned = true;
    }
    if (group_) reports = cuda::exchange(*group_, reports.front(), wait_limit_);
    note_unreachable(reports);
    return reports;
  }

  // Marks a rank as lost that this process's proxy cannot reach, even if it still answers others.
  void note_unreachable(std::vector<RankReport>& reports) const {
    if (prepared_->network == nullptr) return;
    const auto error = prepared_->network->error();
    if (error) reports[static_cast<std::size_t>(error->peer)].is_lost = true;
  }

  // Captures the graph, creates events for the times, and fills memory that no caller has set with
  // NaNs of the bits of device::kAbsent.
  [[nodiscard]] Checked<Ok> ready(RankProgram& program, const RunOptions& options, RankRun& run) {
    const Result<Ok, CudaError> current = program.device().make_current();
    if (!current.ok()) return to_diag(current.error());
    if (!is_captured_) HP_REQUIRE_OK(program.capture(wait_limit_));
    run.stamps = Timestamps(options.iterations, options.in_a_row);
    HP_TRY(run.ends, events_for(program, run.stamps.last()));
    const Result<Ok, CudaError> poisoned = poison(program);
    if (!poisoned.ok()) return to_diag(poisoned.error());
    return Ok{};
  }

  [[nodiscard]] FaultReport not_ready(int rank, const Diag& why) const {
    Fault fault;
    if (why.code == DiagCode::N010 && group_ && group_->lost()) {
      fault.kind = FaultKind::PeerLost;
      fault.rank = RankId(*group_->lost());
      return {fault};
    }
    fault.kind = FaultKind::DeviceFailed;
    fault.rank = RankId(rank);
    fault.signal = render_message(why);
    return {fault};
  }

  [[nodiscard]] Result<Ok, CudaError> poison(const RankProgram& program) const {
    const int rank = program.rank();
    const cuda::DriverApi& driver = program.device().driver();
    for (const Alloc& alloc : plan().allocs) {
      if (alloc.rank.value != rank || alloc.bytes == 0) continue;
      const Buffer* const buffer = find_buffer(plan().program, alloc.buffer);
      HP_CHECK(buffer != nullptr, "buffer of `" + alloc.name + "`");
      if (alloc.level == Level::Home && buffer->role == Role::In) continue;
      const auto at = static_cast<CUdeviceptr>(prepared_->peers.arena(rank) +
                                               static_cast<std::uint64_t>(alloc.offset));
      HP_REQUIRE_OK(
          cuda_call(driver, "cuMemsetD8Async",
                    driver.cuMemsetD8Async(at, 0xff, static_cast<std::size_t>(alloc.bytes),
                                           program.origin().handle())));
    }
    if (prepared_->numbers.bytes > 0) {
      const auto at = static_cast<CUdeviceptr>(
          prepared_->peers.arena(rank) + static_cast<std::uint64_t>(prepared_->numbers.offset));
      const auto bytes = static_cast<std::size_t>(prepared_->numbers.bytes);
      HP_REQUIRE_OK(cuda_call(driver, "cuMemsetD8Async",
                              driver.cuMemsetD8Async(at, 0, bytes, program.origin().handle())));
    }
    return program.origin().synchronize();
  }

  // The time of an execution is that of the slowest rank.
  [[nodiscard]] Checked<RunStats> stats_of(const std::vector<RankRun>& runs) {
    RunStats stats;
    for (std::size_t i = 1; i < runs.front().ends.size(); ++i) {
      double longest = 0;
      for (const RankRun& run : runs) {
        const Result<double, CudaError> took = run.ends[i].milliseconds_since(run.ends[i - 1]);
        if (took.ok()) longest = std::max(longest, *took);
      }
      const auto at = static_cast<std::int64_t>(i);
      longest /= static_cast<double>(runs.front().stamps.executions_until(at));
      stats.iterations.emplace_back(std::llround(longest * 1e6));
    }
    if (group_) {
      HP_TRY(stats.iterations, group_->longest_of(std::move(stats.iterations)));
    }
    stats.peak_bytes = arena_bytes(plan());
    stats.collectives = prepared_->uses;
    for (const Task& task : plan().tasks) {
      const bool moves = task.kind == TaskKind::Copy || task.kind == TaskKind::Collective;
      if (moves) stats.bytes_moved += task.bytes;
    }
    return stats;
  }

  std::unique_ptr<Prepared> prepared_;
  std::vector<RankProgram> programs_;  // of the ranks of this process
  std::optional<ProcessGroup> group_;  // if other processes have the other ranks
  std::chrono::milliseconds wait_limit_;
  bool is_captured_ = false;
  bool broken_ = false;
  bool has_run_ = false;
};

}  // namespace

Checked<std::unique_ptr<Executor>> make_cuda_executor(const Plan& plan,
                                                      const CudaOptions& options) {
  HP_REQUIRE_OK(cuda::check_tasks(plan));
  HP_REQUIRE_OK(actions::check_buffers(plan.program));
  HP_TRY(Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  std::optional<ProcessGroup> group;
  if (options.launch) {
    HP_REQUIRE_OK(cuda::check_launch(options, plan));
    HP_TRY(group, ProcessGroup::meet(*options.launch, options.warn));
    HP_REQUIRE_OK(group->compare(hash_text(print_plan(plan))));
  }
  HP_TRY(const cuda::ExecutorTools tools, agreed(group, cuda::open_tools(plan, options)));
  cuda::DescribedTarget gpus{.multiprocessors = tools.multiprocessors(),
                             .shares_gpus = tools.shares_gpus,
                             .divides_gpus = tools.divides_gpus,
                             .collectives = options.collectives};
  launch::Exchanges exchanges = launch::exchanges_of(plan, blocks, cuda::LaunchTarget(gpus));
  HP_TRY(const std::optional<library::Nccl> nccl, cuda::open_nccl(exchanges, group, options));
  if (!nccl) gpus.collectives = CollectiveEngine::Pull;
  HP_TRY(launch::LaunchPlan launches,
         agreed(group, launch::make_launches(plan, blocks, cuda::LaunchTarget(gpus))));
  HP_REQUIRE_OK(agreed(group, options.prove(launches)));
  HP_TRY(std::unique_ptr<Prepared> prepared,
         Prepared::make(plan, std::move(blocks), std::move(launches), exchanges,
                        [&](std::int64_t bytes, std::int32_t signals) {
                          return agreed(group, cuda::peers_of(tools, group, bytes, signals));
                        }));
  cuda::add_libraries(*prepared, tools.compiler, options);
  transport::Exchange* const others = group ? &group->exchange() : nullptr;
  HP_REQUIRE_OK(agreed(group, cuda::open_network(*prepared, others, options)));
  HP_REQUIRE_OK(agreed(group, cuda::connect_collectives(*prepared, nccl, others)));
  HP_TRY(std::vector<RankProgram> programs, agreed(group, cuda::make_programs(*prepared, options)));
  HP_REQUIRE_OK(agreed(group, cuda::warm_up_collectives(*prepared, programs, kToMeet)));
  return std::unique_ptr<Executor>(std::make_unique<CudaExecutor>(
      std::move(prepared), std::move(programs), std::move(group), options.wait_limit));
}

}  // namespace harpe
