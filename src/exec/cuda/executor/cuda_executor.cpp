#include "exec/cuda/executor/cuda_executor.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "exec/actions/prepare.h"
#include "exec/cuda/executor/gpu_faults.h"
#include "exec/cuda/executor/homes.h"
#include "exec/cuda/executor/rank_program.h"
#include "support/check.h"

namespace harpe {
namespace {

using cuda::CudaError;
using cuda::RankEnd;
using cuda::RankProgram;

constexpr std::int64_t kMaxTasks = 1'000'000;  // D17
// A fold holds whole regions: a launch costs more than a pass over memory.
constexpr std::int64_t kScratchElements = std::int64_t{1} << 30;

// Where the numbers of Occupancy lie in a rank's arena: behind the data.
struct Numbers {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

// The plan, its index algebra and its memory, at addresses that stay.
struct Prepared {
  Plan plan;
  Blocks blocks;
  cuda::Wiring wiring;
  cuda::Peers peers;
  std::vector<std::unique_ptr<cuda::KernelLibrary>> libraries;  // per GPU
  cuda::RankLibraries of_rank;
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
  CudaExecutor(std::unique_ptr<Prepared> prepared, std::vector<RankProgram> programs)
      : prepared_(std::move(prepared)), programs_(std::move(programs)) {}

  [[nodiscard]] Checked<Ok> set_input(const std::string& buffer,
                                      const HostTensor& tensor) override {
    const Buffer* declared = find_buffer(plan().program, buffer);
    HP_CHECK(declared != nullptr, "input `" + buffer + "`");
    HP_CHECK(tensor.shape == shape_of(plan().program, *declared), "shape of `" + buffer + "`");
    return cuda::scatter(prepared_->setting(), prepared_->of_rank, buffer, tensor);
  }

  [[nodiscard]] Result<RunStats, FaultReport> run(const RunOptions& options) override {
    HP_CHECK(!broken_, "an executor is not run again after a fault");
    broken_ = true;  // until this run is over
    std::vector<RankRun> runs(programs_.size());
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      const Checked<Ok> is_ready = ready(rank, options, runs[rank]);
      if (!is_ready.ok()) return not_ready(rank, is_ready.error());
    }
    limit_ = options.wait_limit;
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
  [[nodiscard]] Checked<Ok> ready(std::size_t rank, const RunOptions& options, RankRun& run) {
    RankProgram& program = programs_[rank];
    const Result<Ok, CudaError> current = program.device().make_current();
    if (!current.ok()) return to_diag(current.error());
    if (limit_ != options.wait_limit) HP_REQUIRE_OK(program.capture(options.wait_limit));
    for (std::int64_t i = 0; i <= options.iterations; ++i) {
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
  std::optional<std::chrono::milliseconds> limit_;  // of what was captured
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

// What a task launches on its rank's GPU.
Checked<cuda::Launches> launches_of(Prepared& prepared, TaskId id) {
  const Task& task = prepared.plan.tasks[id.index()];
  const auto rank = prepared.plan.lanes[task.lane.index()].rank;
  cuda::KernelLibrary& library = *prepared.of_rank[rank.index()];
  std::optional<Diag> failed;
  const actions::Scratch scratch{
      .reserve =
          [&](std::int64_t bytes) {
            Checked<cuda::DeviceMemory> piece =
                cuda::DeviceMemory::allocate(library.device(), bytes);
            if (!piece.ok()) {
              failed = piece.error();
              return static_cast<std::byte*>(nullptr);
            }
            prepared.pieces.push_back(std::move(piece).value());
            return reinterpret_cast<std::byte*>(prepared.pieces.back().address());
          },
      .elements = kScratchElements};
  HP_TRY(const actions::TaskWork work, actions::prepare_task(prepared.setting(scratch), task));
  if (failed) return *failed;
  cuda::Launches launches;
  cuda::ActionContext context{
      .library = library,
      .choice = {.nest = task.nest,
                 .buffer = task.writes.empty()
                               ? ""
                               : prepared.plan.allocs[task.writes.front().alloc.index()].buffer,
                 .by_copy_engine = task.kind == TaskKind::Copy && task.via == Via::Ce,
                 .multiprocessors = library.device().facts().multiprocessors}};
  for (const actions::Action& action : work.actions) {
    HP_REQUIRE_OK(cuda::add_launches(context, action, launches));
  }
  return launches;
}

Checked<std::vector<RankProgram>> make_programs(Prepared& prepared, const CudaOptions& options) {
  const std::size_t ranks = prepared.of_rank.size();
  std::vector<std::vector<cuda::Launches>> work(ranks);
  for (std::vector<cuda::Launches>& each : work) each.resize(prepared.plan.tasks.size());
  for (std::size_t i = 0; i < prepared.plan.tasks.size(); ++i) {
    const TaskId id(static_cast<std::int64_t>(i));
    HP_REQUIRE_OK(check_transport(id, prepared.plan.tasks[i]));
    const RankId rank = prepared.plan.lanes[prepared.plan.tasks[i].lane.index()].rank;
    const Result<Ok, CudaError> current = prepared.of_rank[rank.index()]->device().make_current();
    if (!current.ok()) return to_diag(current.error());
    HP_TRY(work[rank.index()][i], launches_of(prepared, id));
  }
  std::vector<RankProgram> programs;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    HP_TRY(cuda::SignalKernels kernels, cuda::SignalKernels::load(*prepared.of_rank[rank]));
    HP_TRY(RankProgram program,
           RankProgram::make(static_cast<int>(rank), {.plan = &prepared.plan,
                                                      .wiring = &prepared.wiring,
                                                      .peers = &prepared.peers,
                                                      .kernels = kernels,
                                                      .work = std::move(work[rank]),
                                                      .drop_signal_of = options.drop_signal_of}));
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

}  // namespace

Checked<std::unique_ptr<Executor>> make_cuda_executor(const Plan& plan,
                                                      const CudaOptions& options) {
  HP_REQUIRE_OK(check_size(plan));
  HP_REQUIRE_OK(actions::check_ragged(plan.program));
  HP_TRY(Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  HP_TRY(const std::shared_ptr<const cuda::DriverApi> driver, cuda::open_driver());
  HP_TRY(std::vector<cuda::DeviceId> gpus, gpus_of(*driver, plan, options));
  HP_TRY(const cuda::Nvrtc compiler, cuda::Nvrtc::open(options.nvrtc, options.cuda_folders));
  cuda::Wiring wiring = cuda::wire(plan);
  const Numbers numbers = numbers_of(plan, blocks);
  HP_TRY(cuda::Peers peers,
         cuda::Peers::open(driver, {.gpus = std::move(gpus),
                                    .arena_bytes = numbers.offset + numbers.bytes,
                                    .flags = most_words(wiring)}));
  actions::Occupancy occupancy(plan, blocks, places_of(peers, numbers));
  auto prepared = std::make_unique<Prepared>(Prepared{.plan = plan,
                                                      .blocks = std::move(blocks),
                                                      .wiring = std::move(wiring),
                                                      .peers = std::move(peers),
                                                      .libraries = {},
                                                      .of_rank = {},
                                                      .bases = {},
                                                      .numbers = numbers,
                                                      .occupancy = std::move(occupancy),
                                                      .no_scratch = {},
                                                      .pieces = {}});
  add_libraries(*prepared, compiler, options);
  HP_TRY(std::vector<RankProgram> programs, make_programs(*prepared, options));
  return std::unique_ptr<Executor>(
      std::make_unique<CudaExecutor>(std::move(prepared), std::move(programs)));
}

}  // namespace harpe
