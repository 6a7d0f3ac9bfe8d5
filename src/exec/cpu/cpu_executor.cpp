#include "exec/cpu/cpu_executor.h"

#include <unistd.h>

#include <algorithm>

#include "exec/actions/prepare.h"
#include "exec/cpu/arena.h"
#include "exec/cpu/faults.h"
#include "exec/cpu/marking.h"
#include "exec/cpu/runner.h"
#include "exec/cpu/tensors.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr std::int64_t kMaxTasks = 1'000'000;  // D17
// A fold's state stays in cache between its sources.
constexpr std::int64_t kScratchElements = std::int64_t{1} << 14;

// The plan and its index algebra, at addresses that stay: everything prepared points into them.
struct Prepared {
  Plan plan;
  Blocks blocks;
  cpu::Arenas arenas;
  cpu::Numbers numbers;
  actions::Occupancy occupancy;
  std::vector<std::unique_ptr<std::byte[]>> pieces;  // of scratch
  actions::Scratch scratch = {};

  [[nodiscard]] actions::Setting setting() const {
    return {.plan = plan,
            .blocks = blocks,
            .bases = arenas.bases(),
            .occupancy = occupancy,
            .scratch = scratch};
  }
};

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(std::unique_ptr<Prepared> prepared, std::vector<actions::TaskWork> work,
              std::vector<std::vector<actions::SlotShare>> shares, CpuOptions options)
      : prepared_(std::move(prepared)),
        shares_(std::move(shares)),
        options_(std::move(options)),
        marking_(prepared_->plan, std::move(work), options_.drop_signal_of) {}

  [[nodiscard]] Checked<Ok> set_input(const std::string& buffer,
                                      const HostTensor& tensor) override {
    const Buffer* declared = find_buffer(plan().program, buffer);
    HP_CHECK(declared != nullptr, "input `" + buffer + "`");
    HP_CHECK(tensor.shape == shape_of(plan().program, *declared), "shape of `" + buffer + "`");
    cpu::scatter(prepared_->setting(), buffer, tensor);
    return Ok{};
  }

  [[nodiscard]] Result<RunStats, FaultReport> run(const RunOptions& options) override {
    HP_CHECK(!broken_, "an executor is not run again after a fault");
    prepared_->arenas.poison(plan());
    prepared_->numbers.clear();
    broken_ = true;  // until this run is over
    marking_.begin(options.iterations, options.trace);
    const cpu::RunOutcome outcome = cpu::run_lanes(marking_, options_, options.wait_limit);
    if (!outcome.finished) {
      return cpu::collect_faults(plan(), prepared_->blocks, marking_, outcome);
    }
    broken_ = false;
    has_run_ = true;
    RunStats stats;
    stats.iterations = marking_.durations();
    stats.cpu_time = outcome.cpu_time;
    stats.trace = marking_.trace();
    stats.peak_bytes = prepared_->arenas.bytes_per_rank();
    for (std::size_t i = 0; i < plan().tasks.size(); ++i) {
      const Task& task = plan().tasks[i];
      const bool moves = task.kind == TaskKind::Copy || task.kind == TaskKind::Collective;
      if (moves) stats.bytes_moved += bytes_moved(task, shares_[i]);
    }
    return stats;
  }

  [[nodiscard]] Checked<HostTensor> output(const std::string& buffer) const override {
    HP_CHECK(has_run_ && !broken_, "an output is read after a run that succeeded");
    return cpu::gather(prepared_->setting(), buffer);
  }

 private:
  [[nodiscard]] const Plan& plan() const { return prepared_->plan; }
  // Rows that nobody chose are not sent.
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
  std::vector<std::vector<actions::SlotShare>> shares_;  // per task
  CpuOptions options_;
  cpu::Marking marking_;
  bool broken_ = false;
  bool has_run_ = false;
};

Checked<Ok> check_size(const Plan& plan) {
  const auto tasks = static_cast<std::int64_t>(plan.tasks.size());
  if (tasks > kMaxTasks) {
    return make_diag(DiagCode::X010, {{"tasks", tasks}, {"limit", kMaxTasks}});
  }
  constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const std::int64_t available = sysconf(_SC_PHYS_PAGES) / (kMebibyte / page);
  const std::int64_t ranks = plan.mesh.ranks();
  const std::int64_t rank_bytes = arena_bytes(plan);
  // In floating point: sizes in a plan file may be anything.
  const double needed =
      static_cast<double>(rank_bytes) / static_cast<double>(kMebibyte) * static_cast<double>(ranks);
  if (needed > static_cast<double>(available)) {
    return make_diag(DiagCode::X005, {{"needed", static_cast<std::int64_t>(needed)},
                                      {"ranks", ranks},
                                      {"available", available}});
  }
  return Ok{};
}

}  // namespace

Checked<std::unique_ptr<Executor>> make_cpu_executor(const Plan& plan, const CpuOptions& options) {
  HP_REQUIRE_OK(check_size(plan));
  HP_REQUIRE_OK(actions::check_ragged(plan.program));
  HP_TRY(Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  cpu::Numbers numbers(plan, actions::Occupancy::bytes_per_rank(plan, blocks));
  actions::Occupancy occupancy(plan, blocks, numbers.of_ranks());
  auto prepared = std::make_unique<Prepared>(Prepared{.plan = plan,
                                                      .blocks = std::move(blocks),
                                                      .arenas = cpu::Arenas(plan),
                                                      .numbers = std::move(numbers),
                                                      .occupancy = std::move(occupancy),
                                                      .pieces = {}});
  prepared->scratch = {
      .reserve =
          [&pieces = prepared->pieces](std::int64_t bytes) {
            pieces.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes)));
            return pieces.back().get();
          },
      .elements = kScratchElements};
  const actions::Setting setting = prepared->setting();
  std::vector<actions::TaskWork> work;
  std::vector<std::vector<actions::SlotShare>> shares;
  work.reserve(prepared->plan.tasks.size());
  for (const Task& task : prepared->plan.tasks) {
    HP_TRY(actions::TaskWork actions, actions::prepare_task(setting, task));
    shares.push_back(std::move(actions.shares));
    work.push_back(std::move(actions));
  }
  return std::unique_ptr<Executor>(std::make_unique<CpuExecutor>(
      std::move(prepared), std::move(work), std::move(shares), options));
}

}  // namespace harpe
