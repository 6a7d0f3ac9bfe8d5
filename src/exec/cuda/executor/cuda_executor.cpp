#include "exec/cuda/executor/cuda_executor.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "exec/actions/prepare.h"
#include "exec/cuda/executor/checks.h"
#include "exec/cuda/executor/gpu_faults.h"
#include "exec/cuda/executor/homes.h"
#include "exec/cuda/executor/process_group.h"
#include "exec/cuda/executor/rank_program.h"
#include "exec/cuda/executor/units.h"
#include "plan/text.h"
#include "support/check.h"
#include "support/hash.h"

namespace harpe {
namespace {

using cuda::CudaError;
using cuda::ProcessGroup;
using cuda::RankEnd;
using cuda::RankProgram;
using cuda::RankReport;

// A fold holds whole regions: a launch costs more than a pass over memory.
constexpr std::int64_t kScratchElements = std::int64_t{1} << 30;
// At most two windows of executions are ordered ahead: a driver's queue that is full of one rank's
// holds up others that share the GPU.
constexpr std::size_t kWindow = 32;

// Where the numbers of Occupancy lie in a rank's arena: behind the data.
struct Numbers {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

// The plan, its index algebra and its memory, at addresses that stay.
struct Prepared {
  Plan plan;
  Blocks blocks;
  cuda::Groups groups;
  cuda::Wiring wiring;
  cuda::Peers peers;
  std::vector<std::unique_ptr<cuda::KernelLibrary>> libraries;  // per GPU
  cuda::RankLibraries of_rank;  // of ranks in other processes this one's own
  actions::Bases bases;
  Numbers numbers;
  actions::Occupancy occupancy;
  actions::Scratch no_scratch;
  std::vector<cuda::DeviceMemory> pieces;  // of scratch

  [[nodiscard]] actions::Setting setting(const actions::Scratch& scratch) const {
    return {
        .plan = plan, .blocks = blocks, .bases = bases, .occupancy = occupancy, .scratch = scratch};
  }
  [[nodiscard]] actions::Setting setting() const { return setting(no_scratch); }
};

// One rank's executions, by a thread of its own: a full queue of one rank holds up no other.
struct RankRun {
  std::vector<cuda::Event> ends;  // the start, then the end of each execution
  RankEnd end;

  void go(const RankProgram& program) {
    const Result<Ok, CudaError> done = replay_all(program);
    if (!done.ok()) end = done.error();
  }

 private:
  [[nodiscard]] Result<Ok, CudaError> replay_all(const RankProgram& program) const {
    HP_REQUIRE_OK(program.device().make_current());
    const cuda::DriverApi& driver = program.device().driver();
    HP_REQUIRE_OK(ends.front().record(program.origin()));
    for (std::size_t i = 1; i < ends.size(); ++i) {
      if (i % kWindow == 0 && i > 2 * kWindow) {
        const CUevent past = ends[i - 2 * kWindow].handle();
        HP_REQUIRE_OK(cuda_call(driver, "cuEventSynchronize", driver.cuEventSynchronize(past)));
      }
      HP_REQUIRE_OK(program.replay());
      HP_REQUIRE_OK(ends[i].record(program.origin()));
    }
    return program.origin().synchronize();
  }
};

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(std::unique_ptr<Prepared> prepared, std::vector<RankProgram> programs,
               std::optional<ProcessGroup> group, std::chrono::milliseconds wait_limit)
      : prepared_(std::move(prepared)),
        programs_(std::move(programs)),
        group_(std::move(group)),
        wait_limit_(wait_limit) {}
  CudaExecutor(const CudaExecutor&) = delete;
  CudaExecutor& operator=(const CudaExecutor&) = delete;
  // Others may still read this rank's outputs. Who is gone is not waited for.
  ~CudaExecutor() override {
    if (group_ && !broken_) static_cast<void>(prepared_->peers.leave(group_->bootstrap()));
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
    return cuda::scatter(prepared_->setting(), here, buffer, tensor);
  }

  [[nodiscard]] Result<RunStats, FaultReport> run(const RunOptions& options) override {
    HP_CHECK(!broken_, "an executor is not run again after a fault");
    HP_CHECK(options.wait_limit == wait_limit_, "kernels were made for another limit of waits");
    broken_ = true;  // until this run is over
    std::vector<RankRun> runs(programs_.size());
    std::optional<FaultReport> unready = all_ready(options.iterations, runs);
    if (unready) return *std::move(unready);
    is_captured_ = true;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      threads.emplace_back([&, i] { runs[i].go(programs_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    FaultReport faults =
        cuda::collect_gpu_faults(plan(), prepared_->blocks, prepared_->wiring, reports_of(runs));
    if (faults.empty()) {
      Checked<RunStats> stats = stats_of(runs);
      if (!stats.ok()) return not_ready(programs_.front().rank(), stats.error());
      broken_ = false;
      has_run_ = true;
      return std::move(stats).value();
    }
    return faults;
  }

  [[nodiscard]] Checked<HostTensor> output(const std::string& buffer) const override {
    HP_CHECK(has_run_ && !broken_, "an output is read after a run that succeeded");
    return cuda::gather(prepared_->setting(), prepared_->of_rank, buffer);
  }

 private:
  [[nodiscard]] const Plan& plan() const { return prepared_->plan; }

  // All ranks, those of other processes too: nobody clears what another still reads, or waits
  // while another still prepares.
  [[nodiscard]] std::optional<FaultReport> all_ready(std::int64_t iterations,
                                                     std::vector<RankRun>& runs) {
    if (group_) {
      const Checked<Ok> is_idle = group_->wait_for_all();
      if (!is_idle.ok()) return not_ready(group_->rank(), is_idle.error());
    }
    std::optional<Diag> failure;
    std::size_t at = 0;
    for (; at < programs_.size(); ++at) {
      const Checked<Ok> is_ready = ready(programs_[at], iterations, runs[at]);
      if (is_ready.ok()) continue;
      failure = is_ready.error();
      break;
    }
    if (group_) {
      const Checked<Ok> is_agreed = group_->agree(failure);
      if (!is_agreed.ok()) failure = is_agreed.error();
    }
    if (!failure) return std::nullopt;
    return not_ready(programs_[std::min(at, programs_.size() - 1)].rank(), *failure);
  }

  [[nodiscard]] std::vector<RankReport> reports_of(std::vector<RankRun>& runs) {
    std::vector<RankReport> reports;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      reports.push_back(
          cuda::report_of(prepared_->peers, programs_[i].rank(), std::move(runs[i].end)));
    }
    return group_ ? group_->exchange(reports.front()) : reports;
  }

  // The graph, events for the times, and memory that no caller has filled full of NaNs.
  [[nodiscard]] Checked<Ok> ready(RankProgram& program, std::int64_t iterations, RankRun& run) {
    const Result<Ok, CudaError> current = program.device().make_current();
    if (!current.ok()) return to_diag(current.error());
    if (!is_captured_) HP_REQUIRE_OK(program.capture(wait_limit_));
    for (std::int64_t i = 0; i <= iterations; ++i) {
      HP_TRY(cuda::Event event, cuda::Event::create(program.device()));
      run.ends.push_back(std::move(event));
    }
    const Result<Ok, CudaError> poisoned = poison(program);
    if (!poisoned.ok()) return to_diag(poisoned.error());
    return Ok{};
  }

  [[nodiscard]] static FaultReport not_ready(int rank, const Diag& why) {
    Fault fault;
    if (why.code == DiagCode::G077 && rank != 0) {
      fault.kind = FaultKind::PeerLost;
      fault.rank = RankId(0);
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
      const bool given = buffer->role == Role::In || buffer->role == Role::InOut;
      if (alloc.level == Level::Home && given) continue;
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

  // An execution takes as long as on the rank that took longest.
  [[nodiscard]] Checked<RunStats> stats_of(const std::vector<RankRun>& runs) {
    RunStats stats;
    for (std::size_t i = 1; i < runs.front().ends.size(); ++i) {
      double longest = 0;
      for (const RankRun& run : runs) {
        const Result<double, CudaError> took = run.ends[i].milliseconds_since(run.ends[i - 1]);
        if (took.ok()) longest = std::max(longest, *took);
      }
      stats.iterations.emplace_back(std::llround(longest * 1e6));
    }
    if (group_) {
      HP_TRY(stats.iterations, group_->longest_of(std::move(stats.iterations)));
    }
    stats.peak_bytes = arena_bytes(plan());
    for (const Task& task : plan().tasks) {
      const bool moves = task.kind == TaskKind::Copy || task.kind == TaskKind::Collective;
      if (moves) stats.bytes_moved += task.bytes;
    }
    return stats;
  }

  std::unique_ptr<Prepared> prepared_;
  std::vector<RankProgram> programs_;  // of the ranks of this process
  std::optional<ProcessGroup> group_;  // where others have the other ranks
  std::chrono::milliseconds wait_limit_;
  bool is_captured_ = false;
  bool broken_ = false;
  bool has_run_ = false;
};

// One library of kernels for each GPU, in the order of ranks. Other processes' memory is reached
// from the GPU of this one's rank.
void add_libraries(Prepared& prepared, const cuda::Nvrtc& compiler, const CudaOptions& options) {
  std::map<std::int64_t, cuda::KernelLibrary*> known;
  for (int rank = 0; rank < prepared.peers.ranks(); ++rank) {
    const cuda::Device& device =
        prepared.peers.device(options.launch ? options.launch->rank : rank);
    cuda::KernelLibrary*& library = known[device.facts().id.value];
    if (library == nullptr) {
      prepared.libraries.push_back(
          std::make_unique<cuda::KernelLibrary>(device, compiler, options.kernel_cache));
      library = prepared.libraries.back().get();
    }
    prepared.of_rank.push_back(library);
    prepared.bases.arenas.push_back(reinterpret_cast<std::byte*>(prepared.peers.arena(rank)));
  }
}

// What a task becomes on its rank's GPU.
Checked<cuda::TaskSpecs> specs_of(Prepared& prepared, TaskId id) {
  const Task& task = prepared.plan.tasks[id.index()];
  const auto rank = prepared.plan.lanes[task.lane.index()].rank;
  const cuda::Device& device = prepared.of_rank[rank.index()]->device();
  std::optional<Diag> failed;
  const actions::Scratch scratch{
      .reserve =
          [&](std::int64_t bytes) {
            Checked<cuda::DeviceMemory> piece = cuda::DeviceMemory::allocate(device, bytes);
            if (!piece.ok()) {
              failed = piece.error();
              return static_cast<std::byte*>(nullptr);
            }
            prepared.pieces.push_back(std::move(piece).value());
            return reinterpret_cast<std::byte*>(prepared.pieces.back().address());
          },
      .elements = kScratchElements};
  HP_TRY(actions::TaskWork work, actions::prepare_task(prepared.setting(scratch), task));
  if (failed) return *failed;
  const cuda::LaunchChoice choice{
      .nest = task.nest,
      .buffer =
          task.writes.empty() ? "" : prepared.plan.allocs[task.writes.front().alloc.index()].buffer,
      .by_copy_engine = task.kind == TaskKind::Copy && task.via == Via::Ce,
      .multiprocessors = device.facts().multiprocessors};
  cuda::TaskSpecs specs;
  for (const actions::Action& action : work.actions) {
    HP_TRY(const std::vector<cuda::LaunchSpec> launches, cuda::plan_launches(choice, action));
    specs.launches.insert(specs.launches.end(), launches.begin(), launches.end());
  }
  specs.actions = std::move(work.actions);
  return specs;
}

cuda::SignalSource signals_of(const Prepared& prepared, int rank, const CudaOptions& options) {
  cuda::SignalSource source;
  source.context = prepared.peers.page(rank).context(options.wait_limit);
  std::int32_t index = 0;
  for (const cuda::Word& word : prepared.wiring.pages[static_cast<std::size_t>(rank)]) {
    source.words.push_back(cuda::wait_on(prepared.peers.signals(rank), index++,
                                         static_cast<std::uint32_t>(word.arrivals))
                               .wait);
  }
  source.arena = prepared.peers.arena(rank);
  source.is_alone = prepared.libraries.size() == prepared.of_rank.size() || options.launch;
  source.target = [&prepared, &options](TaskId task, const cuda::Raise& raise) {
    std::optional<device::RaiseTarget> target;
    if (options.drop_signal_of == task) return target;
    const cuda::SignalAddresses& page = prepared.peers.signals(static_cast<int>(raise.rank.value));
    target =
        raise.is_counter ? cuda::counter_of(page, raise.word) : cuda::flag_of(page, raise.word);
    return target;
  };
  return source;
}

Checked<std::vector<cuda::Unit>> units_of(const Prepared& prepared, int rank,
                                          const std::vector<cuda::TaskSpecs>& specs,
                                          const CudaOptions& options) {
  cuda::KernelLibrary& library = *prepared.of_rank[static_cast<std::size_t>(rank)];
  const Result<Ok, CudaError> current = library.device().make_current();
  if (!current.ok()) return to_diag(current.error());
  std::vector<cuda::Unit> units;
  for (cuda::UnitSpec& spec :
       cuda::make_units(prepared.plan, prepared.wiring, prepared.groups, RankId(rank), specs,
                        signals_of(prepared, rank, options))) {
    cuda::Unit& unit = units.emplace_back();
    unit.tasks = std::move(spec.tasks);
    unit.waits_inside = spec.waits_inside;
    unit.raised_by = spec.raised_by;
    unit.silent = std::move(spec.silent);
    unit.behind = std::move(spec.behind);
    unit.awaited = std::move(spec.awaited);
    const int multiprocessors = library.device().facts().multiprocessors - spec.spared;
    for (const cuda::LaunchSpec& launch : spec.launches) {
      HP_REQUIRE_OK(unit.work.add(library, launch, multiprocessors));
    }
  }
  return units;
}

Checked<std::vector<RankProgram>> make_programs(Prepared& prepared, const CudaOptions& options) {
  std::vector<cuda::TaskSpecs> specs;
  for (std::size_t i = 0; i < prepared.plan.tasks.size(); ++i) {
    const TaskId id(static_cast<std::int64_t>(i));
    // Of a rank in another process nothing is launched here.
    const RankId rank = prepared.plan.lanes[prepared.plan.tasks[i].lane.index()].rank;
    if (!prepared.peers.is_own(static_cast<int>(rank.value))) {
      specs.emplace_back();
      continue;
    }
    HP_TRY(cuda::TaskSpecs own, specs_of(prepared, id));
    specs.push_back(std::move(own));
  }
  std::vector<RankProgram> programs;
  for (int rank = 0; rank < prepared.peers.ranks(); ++rank) {
    if (!prepared.peers.is_own(rank)) continue;
    HP_TRY(std::vector<cuda::Unit> units, units_of(prepared, rank, specs, options));
    HP_TRY(cuda::SignalKernels kernels,
           cuda::SignalKernels::load(*prepared.of_rank[static_cast<std::size_t>(rank)]));
    HP_TRY(RankProgram program, RankProgram::make(rank, {.plan = &prepared.plan,
                                                         .wiring = &prepared.wiring,
                                                         .peers = &prepared.peers,
                                                         .kernels = kernels,
                                                         .units = std::move(units),
                                                         .drop_signal_of = options.drop_signal_of,
                                                         .delay_seed = options.delay_seed}));
    programs.push_back(std::move(program));
  }
  return programs;
}

Numbers numbers_of(const Plan& plan, const Blocks& blocks) {
  constexpr std::int64_t kAlign = 512;
  return {.offset = (arena_bytes(plan) + kAlign - 1) / kAlign * kAlign,
          .bytes = actions::Occupancy::bytes_per_rank(plan, blocks)};
}

std::vector<std::byte*> places_of(const cuda::Peers& peers, const Numbers& numbers) {
  std::vector<std::byte*> places;
  for (int rank = 0; rank < peers.ranks(); ++rank) {
    places.push_back(reinterpret_cast<std::byte*>(peers.arena(rank)) + numbers.offset);
  }
  return places;
}

std::int32_t most_words(const cuda::Wiring& wiring) {
  std::size_t most = 0;
  for (const std::vector<cuda::Word>& page : wiring.pages) most = std::max(most, page.size());
  return static_cast<std::int32_t>(most);
}

// What this process runs its ranks with.
struct Tools {
  std::shared_ptr<const cuda::DriverApi> driver;
  std::vector<cuda::DeviceId> gpus;
  cuda::Nvrtc compiler;
};

Checked<Tools> open_tools(const Plan& plan, const CudaOptions& options) {
  HP_TRY(std::shared_ptr<const cuda::DriverApi> driver, cuda::open_driver());
  HP_TRY(std::vector<cuda::DeviceId> gpus, cuda::gpus_of(*driver, plan.mesh.ranks(), options));
  HP_TRY(cuda::Nvrtc compiler, cuda::Nvrtc::open(options.nvrtc, options.cuda_folders));
  return Tools{
      .driver = std::move(driver), .gpus = std::move(gpus), .compiler = std::move(compiler)};
}

// Where there are other processes, what one of them could not do is an error of all.
template <class T>
Checked<T> agreed(std::optional<ProcessGroup>& group, Checked<T> own) {
  if (!group) return own;
  HP_REQUIRE_OK(group->agree(own.ok() ? std::nullopt : std::optional(own.error())));
  return own;
}

Checked<cuda::Peers> peers_of(const Tools& tools, std::optional<ProcessGroup>& group,
                              std::int64_t bytes, std::int32_t words) {
  if (group) {
    return cuda::Peers::join(tools.driver,
                             {.gpu = tools.gpus.front(), .arena_bytes = bytes, .flags = words},
                             group->bootstrap());
  }
  return cuda::Peers::open(tools.driver,
                           {.gpus = tools.gpus, .arena_bytes = bytes, .flags = words});
}

}  // namespace

Checked<std::unique_ptr<Executor>> make_cuda_executor(const Plan& plan,
                                                      const CudaOptions& options) {
  HP_REQUIRE_OK(cuda::check_tasks(plan));
  HP_REQUIRE_OK(actions::check_ragged(plan.program));
  HP_TRY(Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  std::optional<ProcessGroup> group;
  if (options.launch) {
    HP_TRY(group, ProcessGroup::meet(*options.launch, plan));
    HP_REQUIRE_OK(group->compare(hash_text(print_plan(plan))));
  }
  HP_TRY(const Tools tools, agreed(group, open_tools(plan, options)));
  cuda::Groups groups = cuda::find_groups(plan);
  cuda::Wiring wiring = cuda::wire(plan, groups);
  const Numbers numbers = numbers_of(plan, blocks);
  HP_TRY(cuda::Peers peers,
         agreed(group, peers_of(tools, group, numbers.offset + numbers.bytes, most_words(wiring))));
  actions::Occupancy occupancy(plan, blocks, places_of(peers, numbers));
  auto prepared = std::make_unique<Prepared>(Prepared{.plan = plan,
                                                      .blocks = std::move(blocks),
                                                      .groups = std::move(groups),
                                                      .wiring = std::move(wiring),
                                                      .peers = std::move(peers),
                                                      .libraries = {},
                                                      .of_rank = {},
                                                      .bases = {},
                                                      .numbers = numbers,
                                                      .occupancy = std::move(occupancy),
                                                      .no_scratch = {},
                                                      .pieces = {}});
  add_libraries(*prepared, tools.compiler, options);
  HP_TRY(std::vector<RankProgram> programs, agreed(group, make_programs(*prepared, options)));
  return std::unique_ptr<Executor>(std::make_unique<CudaExecutor>(
      std::move(prepared), std::move(programs), std::move(group), options.wait_limit));
}

}  // namespace harpe
