#include "exec/cpu/cpu_executor.h"

#include <unistd.h>

#include <algorithm>

#include "exec/cpu/faults.h"
#include "exec/cpu/marking.h"
#include "exec/cpu/prepare.h"
#include "exec/cpu/runner.h"
#include "exec/cpu/tensors.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr std::int64_t kMaxTasks = 1'000'000;  // D17

// The plan and its index algebra, at addresses that stay: everything prepared points into them.
struct Prepared {
  Plan plan;
  Blocks blocks;
  cpu::Arenas arenas;
  cpu::Occupancy occupancy;
};

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(std::unique_ptr<Prepared> prepared, std::vector<cpu::TaskWork> work,
              CpuOptions options)
      : prepared_(std::move(prepared)),
        options_(std::move(options)),
        marking_(prepared_->plan, std::move(work), options_.drop_signal_of) {}

  void set_input(const std::string& buffer, const HostTensor& tensor) override {
    const Buffer* declared = find_buffer(plan().program, buffer);
    HP_CHECK(declared != nullptr, "input `" + buffer + "`");
    HP_CHECK(tensor.shape == shape_of(plan().program, *declared), "shape of `" + buffer + "`");
    cpu::scatter(setting(), buffer, tensor);
  }

  [[nodiscard]] Result<RunStats, FaultReport> run(const RunOptions& options) override {
    HP_CHECK(!broken_, "an executor is not run again after a fault");
    prepared_->arenas.poison(plan());
    prepared_->occupancy.clear();
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
    for (const Task& task : plan().tasks) {
      const bool moves = task.kind == TaskKind::Copy || task.kind == TaskKind::Collective;
      if (moves) stats.bytes_moved += task.bytes;
    }
    return stats;
  }

  [[nodiscard]] HostTensor output(const std::string& buffer) const override {
    HP_CHECK(has_run_ && !broken_, "an output is read after a run that succeeded");
    return cpu::gather(setting(), buffer);
  }

 private:
  [[nodiscard]] const Plan& plan() const { return prepared_->plan; }
  [[nodiscard]] cpu::Setting setting() const {
    return {.plan = prepared_->plan,
            .blocks = prepared_->blocks,
            .arenas = prepared_->arenas,
            .occupancy = prepared_->occupancy};
  }

  std::unique_ptr<Prepared> prepared_;
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
  HP_TRY(Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  cpu::Occupancy occupancy(plan, blocks);
  auto prepared = std::make_unique<Prepared>(
      Prepared{plan, std::move(blocks), cpu::Arenas(plan), std::move(occupancy)});
  const cpu::Setting setting{.plan = prepared->plan,
                             .blocks = prepared->blocks,
                             .arenas = prepared->arenas,
                             .occupancy = prepared->occupancy};
  std::vector<cpu::TaskWork> work;
  work.reserve(prepared->plan.tasks.size());
  for (const Task& task : prepared->plan.tasks) {
    HP_TRY(cpu::TaskWork actions, cpu::prepare_task(setting, task));
    work.push_back(std::move(actions));
  }
  return std::unique_ptr<Executor>(
      std::make_unique<CpuExecutor>(std::move(prepared), std::move(work), options));
}

}  // namespace harpe
