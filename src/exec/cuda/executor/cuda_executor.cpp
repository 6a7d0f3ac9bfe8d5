#include "exec/cuda/executor/cuda_executor.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "exec/actions/prepare.h"
#include "exec/cuda/executor/gpu_faults.h"
#include "exec/cuda/executor/homes.h"
#include "exec/cuda/executor/rank_program.h"
#include "exec/cuda/executor/units.h"
#include "support/check.h"

namespace harpe {
namespace {

using cuda::CudaError;
using cuda::RankEnd;
using cuda::RankProgram;

constexpr std::int64_t kMaxTasks = 1'000'000;  // D17
// A fold holds whole regions: a launch costs more than a pass over memory.
constexpr std::int64_t kScratchElements = std::int64_t{1} << 30;

// The plan, its index algebra and its memory, at addresses that stay.
struct Prepared {
  Plan plan;
  Blocks blocks;
  cuda::Groups groups;
  cuda::Wiring wiring;
  cuda::Peers peers;
  std::vector<std::unique_ptr<cuda::KernelLibrary>> libraries;  // per GPU
  cuda::RankLibraries of_rank;
  actions::Bases bases;
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
    HP_REQUIRE_OK(ends.front().record(program.origin()));
    for (std::size_t i = 1; i < ends.size(); ++i) {
      HP_REQUIRE_OK(program.replay());
      HP_REQUIRE_OK(ends[i].record(program.origin()));
    }
    return program.origin().synchronize();
  }
};

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(std::unique_ptr<Prepared> prepared, std::vector<RankProgram> programs,
               std::chrono::milliseconds wait_limit)
      : prepared_(std::move(prepared)), programs_(std::move(programs)), wait_limit_(wait_limit) {}

  [[nodiscard]] Checked<Ok> set_input(const std::string& buffer,
                                      const HostTensor& tensor) override {
    const Buffer* declared = find_buffer(plan().program, buffer);
    HP_CHECK(declared != nullptr, "input `" + buffer + "`");
    HP_CHECK(tensor.shape == shape_of(plan().program, *declared), "shape of `" + buffer + "`");
    return cuda::scatter(prepared_->setting(), prepared_->of_rank, buffer, tensor);
  }

  [[nodiscard]] Result<RunStats, FaultReport> run(const RunOptions& options) override {
    HP_CHECK(!broken_, "an executor is not run again after a fault");
    HP_CHECK(options.wait_limit == wait_limit_, "kernels were made for another limit of waits");
    broken_ = true;  // until this run is over
    std::vector<RankRun> runs(programs_.size());
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      const Checked<Ok> is_ready = ready(rank, options.iterations, runs[rank]);
      if (!is_ready.ok()) return not_ready(rank, is_ready.error());
    }
    is_captured_ = true;
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      threads.emplace_back([&, rank] { runs[rank].go(programs_[rank]); });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<RankEnd> ends;
    for (RankRun& each : runs) ends.push_back(std::move(each.end));
    FaultReport faults = cuda::collect_gpu_faults(plan(), prepared_->blocks, prepared_->wiring,
                                                  prepared_->peers, ends);
    if (!faults.empty()) return faults;
    broken_ = false;
    has_run_ = true;
    return stats_of(runs);
  }

  [[nodiscard]] Checked<HostTensor> output(const std::string& buffer) const override {
    HP_CHECK(has_run_ && !broken_, "an output is read after a run that succeeded");
    return cuda::gather(prepared_->setting(), prepared_->of_rank, buffer);
  }

 private:
  [[nodiscard]] const Plan& plan() const { return prepared_->plan; }

  // The graph, events for the times, and memory that no caller has filled full of NaNs.
  [[nodiscard]] Checked<Ok> ready(std::size_t rank, std::int64_t iterations, RankRun& run) {
    RankProgram& program = programs_[rank];
    const Result<Ok, CudaError> current = program.device().make_current();
    if (!current.ok()) return to_diag(current.error());
    if (!is_captured_) HP_REQUIRE_OK(program.capture(wait_limit_));
    for (std::int64_t i = 0; i <= iterations; ++i) {
      HP_TRY(cuda::Event event, cuda::Event::create(program.device()));
      run.ends.push_back(std::move(event));
    }
    const Result<Ok, CudaError> poisoned = poison(static_cast<int>(rank));
    if (!poisoned.ok()) return to_diag(poisoned.error());
    return Ok{};
  }

  [[nodiscard]] FaultReport not_ready(std::size_t rank, const Diag& why) const {
    Fault fault;
    fault.kind = FaultKind::DeviceFailed;
    fault.rank = RankId(static_cast<std::int64_t>(rank));
    fault.signal = render(why);
    return {fault};
  }

  [[nodiscard]] Result<Ok, CudaError> poison(int rank) const {
    const RankProgram& program = programs_[static_cast<std::size_t>(rank)];
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
    return program.origin().synchronize();
  }

  // An execution takes as long as on the rank that took longest.
  [[nodiscard]] RunStats stats_of(const std::vector<RankRun>& runs) const {
    RunStats stats;
    for (std::size_t i = 1; i < runs.front().ends.size(); ++i) {
      double longest = 0;
      for (const RankRun& run : runs) {
        const Result<double, CudaError> took = run.ends[i].milliseconds_since(run.ends[i - 1]);
        if (took.ok()) longest = std::max(longest, *took);
      }
      stats.iterations.emplace_back(std::llround(longest * 1e6));
    }
    stats.peak_bytes = arena_bytes(plan());
    for (const Task& task : plan().tasks) {
      const bool moves = task.kind == TaskKind::Copy || task.kind == TaskKind::Collective;
      if (moves) stats.bytes_moved += task.bytes;
    }
    return stats;
  }

  std::unique_ptr<Prepared> prepared_;
  std::vector<RankProgram> programs_;
  std::chrono::milliseconds wait_limit_;
  bool is_captured_ = false;
  bool broken_ = false;
  bool has_run_ = false;
};

Checked<Ok> check_size(const Plan& plan) {
  const auto tasks = static_cast<std::int64_t>(plan.tasks.size());
  if (tasks <= kMaxTasks) return Ok{};
  return make_diag(DiagCode::X010, {{"tasks", tasks}, {"limit", kMaxTasks}});
}

Checked<Ok> check_transport(TaskId id, const Task& task) {
  const bool moves = task.kind == TaskKind::Copy || task.kind == TaskKind::Collective;
  const bool crosses =
      task.via == Via::Proxy || task.via == Via::Ibgda || task.via == Via::Multimem;
  if (!moves || !crosses) return Ok{};
  return make_diag(DiagCode::G074, {{"task", id.value}, {"via", print(task.via)}});
}

Checked<std::vector<cuda::DeviceId>> gpus_of(const cuda::DriverApi& driver, const Plan& plan,
                                             const CudaOptions& options) {
  HP_TRY(const int gpus, cuda::count_devices(driver));
  const std::int64_t ranks = plan.mesh.ranks();
  if (gpus == 0 || (gpus < ranks && !options.share_gpus)) {
    return make_diag(DiagCode::G070, {{"ranks", ranks}, {"gpus", gpus}});
  }
  std::vector<cuda::DeviceId> ids;
  for (std::int64_t rank = 0; rank < ranks; ++rank) ids.emplace_back(rank % gpus);
  return ids;
}

// One library of kernels for each GPU, in the order of ranks.
void add_libraries(Prepared& prepared, const cuda::Nvrtc& compiler, const CudaOptions& options) {
  std::map<std::int64_t, cuda::KernelLibrary*> known;
  for (int rank = 0; rank < prepared.peers.ranks(); ++rank) {
    const cuda::Device& device = prepared.peers.device(rank);
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

cuda::WaitSource waits_of(const Prepared& prepared, int rank, const CudaOptions& options) {
  cuda::WaitSource source;
  source.context = prepared.peers.page(rank).context(options.wait_limit);
  std::int32_t index = 0;
  for (const cuda::Word& word : prepared.wiring.pages[static_cast<std::size_t>(rank)]) {
    source.words.push_back(cuda::wait_on(prepared.peers.signals(rank), index++,
                                         static_cast<std::uint32_t>(word.arrivals))
                               .wait);
  }
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
                        waits_of(prepared, rank, options))) {
    cuda::Unit& unit = units.emplace_back();
    unit.tasks = std::move(spec.tasks);
    unit.waits_inside = spec.waits_inside;
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
    HP_REQUIRE_OK(check_transport(id, prepared.plan.tasks[i]));
    HP_TRY(cuda::TaskSpecs own, specs_of(prepared, id));
    specs.push_back(std::move(own));
  }
  std::vector<RankProgram> programs;
  for (int rank = 0; rank < prepared.peers.ranks(); ++rank) {
    HP_TRY(std::vector<cuda::Unit> units, units_of(prepared, rank, specs, options));
    HP_TRY(cuda::SignalKernels kernels,
           cuda::SignalKernels::load(*prepared.of_rank[static_cast<std::size_t>(rank)]));
    HP_TRY(RankProgram program,
           RankProgram::make(rank, {.plan = &prepared.plan,
                                    .wiring = &prepared.wiring,
                                    .peers = &prepared.peers,
                                    .kernels = kernels,
                                    .units = std::move(units),
                                    .drop_signal_of = options.drop_signal_of}));
    programs.push_back(std::move(program));
  }
  return programs;
}

std::int32_t most_words(const cuda::Wiring& wiring) {
  std::size_t most = 0;
  for (const std::vector<cuda::Word>& page : wiring.pages) most = std::max(most, page.size());
  return static_cast<std::int32_t>(most);
}

}  // namespace

Checked<std::unique_ptr<Executor>> make_cuda_executor(const Plan& plan,
                                                      const CudaOptions& options) {
  HP_REQUIRE_OK(check_size(plan));
  HP_TRY(Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  HP_TRY(const std::shared_ptr<const cuda::DriverApi> driver, cuda::open_driver());
  HP_TRY(std::vector<cuda::DeviceId> gpus, gpus_of(*driver, plan, options));
  HP_TRY(const cuda::Nvrtc compiler, cuda::Nvrtc::open(options.nvrtc, options.cuda_folders));
  cuda::Groups groups = cuda::find_groups(plan);
  cuda::Wiring wiring = cuda::wire(plan, groups);
  HP_TRY(cuda::Peers peers, cuda::Peers::open(driver, {.gpus = std::move(gpus),
                                                       .arena_bytes = arena_bytes(plan),
                                                       .flags = most_words(wiring)}));
  actions::Occupancy occupancy(plan, blocks);
  auto prepared = std::make_unique<Prepared>(Prepared{.plan = plan,
                                                      .blocks = std::move(blocks),
                                                      .groups = std::move(groups),
                                                      .wiring = std::move(wiring),
                                                      .peers = std::move(peers),
                                                      .libraries = {},
                                                      .of_rank = {},
                                                      .bases = {},
                                                      .occupancy = std::move(occupancy),
                                                      .no_scratch = {},
                                                      .pieces = {}});
  add_libraries(*prepared, compiler, options);
  HP_TRY(std::vector<RankProgram> programs, make_programs(*prepared, options));
  return std::unique_ptr<Executor>(
      std::make_unique<CudaExecutor>(std::move(prepared), std::move(programs), options.wait_limit));
}

}  // namespace harpe
