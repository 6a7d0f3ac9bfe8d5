#include "exec/cpu/launch_target.h"

#include "exec/actions/prepare.h"
#include "exec/named_kernels.h"
#include "launch/make_launches.h"
#include "support/check.h"

namespace harpe::cpu {
namespace {

// The kernel's name: the named kernel, the leaf, or the kind of task.
std::string name_work(const Plan& plan, const Task& task) {
  if (!task.leaf_kernel.empty()) return task.leaf_kernel;
  if (task.kind == TaskKind::Compute) return actions::statement_of(plan, task).leaf;
  return std::string(print(task.kind));
}

class TaskOffers : public launch::Offers {
 public:
  explicit TaskOffers(const Plan& plan) : plan_(plan) {}

  Checked<std::span<const launch::Kernel>> kernels_of(TaskId id) override {
    const Task& task = plan_.tasks[id.index()];
    if (task.reads.empty() && task.writes.empty()) return std::span<const launch::Kernel>();
    kernel_.name = name_work(plan_, task);
    return std::span<const launch::Kernel>(&kernel_, 1);
  }
  Checked<std::vector<launch::Kernel>> landing_of(TaskId) override {
    HP_CHECK(false, "CPU ranks land no puts");
    return std::vector<launch::Kernel>();
  }
  bool counts_rows(TaskId) override { return false; }
  std::vector<launch::Kernel> batched(const std::vector<TaskId>&) override {
    HP_CHECK(false, "a CPU rank runs a task by one kernel");
    return {};
  }
  std::optional<std::string> choose(const launch::Launch&, const launch::Kernel&) override {
    return std::nullopt;
  }
  bool moves_by_threads(const launch::Kernel&, DType) override { return false; }
  bool bounds_epochs(const launch::Kernel&) override { return false; }

 private:
  const Plan& plan_;
  launch::Kernel kernel_;  // of the requested task
};

}  // namespace

LaunchTarget::LaunchTarget(bool takes_turns)
    : facts_{.name = "cpu",
             .copy_engine = {},
             .waits_inside = false,
             .takes_turns = takes_turns,
             .exchanges = {.engine = launch::ExchangeEngine::Pull}} {}

Checked<Ok> LaunchTarget::check(const Plan& plan) const {
  return check_kernels(plan, cpu_offers());
}

std::unique_ptr<launch::Offers> LaunchTarget::open(const Plan& plan, const Blocks&,
                                                   const launch::Exchanges&,
                                                   const std::vector<AllocId>&) const {
  return std::make_unique<TaskOffers>(plan);
}

Checked<launch::LaunchPlan> launches_of(const Plan& plan, bool takes_turns) {
  HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  return launch::make_launches(plan, blocks, LaunchTarget(takes_turns));
}

}  // namespace harpe::cpu
