#include "verify/steps.h"

#include <algorithm>
#include <span>
#include <utility>

#include "verify/panel_steps.h"
#include "verify/step_builder.h"

namespace harpe::verifier {
namespace {

class LaunchExpander {
 public:
  LaunchExpander(const Plan& plan, const launch::LaunchPlan& launches, const Words& words,
                 Steps& out)
      : plan_(plan), launches_(launches), words_(words), builder_(out), panels_(builder_, words) {
    const std::size_t own = plan.allocs.size() + launches.boxes.size();
    builder_.begin(plan, launches, own);
    is_begun_.resize(launches.launches.size());
    for (const launch::Launch& each : launches.launches) {
      for (const launch::LaunchId id : each.begun) is_begun_[id.index()] = true;
    }
    for (const Task& task : plan.tasks) groups_ = std::max(groups_, task.group + 1);
  }

  Checked<Ok> run() {
    for (std::size_t id = 0; id < launches_.launches.size(); ++id) HP_REQUIRE_OK(add_launch(id));
    add_edges();
    builder_.repeat(groups_);
    return Ok{};
  }

 private:
  // Adds a launch's steps to its queue, and the steps of its kernels with panels in between.
  Checked<Ok> add_launch(std::size_t id) {
    const launch::Launch& launch = launches_.launches[id];
    builder_.enter(launch::LaunchId(static_cast<std::int64_t>(id)), launch.queue);
    const bool has_parts = std::ranges::any_of(launch.kernels, has_panels);
    const bool is_collective = !launch.ready.empty() || launch.all_ready;
    if (launch.is_skipped || has_parts || is_collective || is_begun_[id]) {
      builder_.add(StepKind::Begin);
    }
    if (!launch.is_skipped) {
      HP_REQUIRE_OK(has_parts ? add_kernels(launch) : add_tasks(launch, launch.does));
    }
    if (launch.all_pulled) builder_.add(StepKind::End);
    const auto first = builder_.out().first.back();
    const auto last = builder_.out().last.back();
    for (const launch::SignalId signal : launch.awaits) builder_.await(signal, first);
    raise_all(launch.ready, first);
    if (launch.all_ready) builder_.await(*launch.all_ready, first + 1);
    if (launch.all_pulled) builder_.await(*launch.all_pulled, last);
    raise_all(launch.pulled, launch.all_pulled ? last - 1 : last);
    raise_all(launch.raises, last);
    return Ok{};
  }

  void raise_all(const std::vector<launch::Raise>& raises, std::int32_t step) {
    for (const launch::Raise& raise : raises) builder_.raise(raise, step);
  }

  Checked<Ok> add_tasks(const launch::Launch& launch, const std::vector<TaskId>& tasks) {
    for (const TaskId id : tasks) {
      Task task = plan_.tasks[id.index()];
      task.queue = launch.queue;
      // Members of a pulling collective read their peers' memory themselves; members of an NCCL
      // call meet.
      const bool meets = std::ranges::any_of(
          launch.kernels, [](const launch::Kernel& kernel) { return kernel.name == "nccl"; });
      if (task.kind == TaskKind::Collective && !meets) task.group = groups_++;
      builder_.add_task(id, std::move(task));
    }
    if (tasks.empty()) builder_.add(StepKind::Begin);
    return Ok{};
  }

  Checked<Ok> add_kernels(const launch::Launch& launch) {
    std::vector<TaskId> left = launch.does;
    for (std::size_t i = 0; i < launch.kernels.size(); ++i) {
      if (!has_panels(launch.kernels[i])) continue;
      HP_REQUIRE_OK(panels_.add(plan_, launch, static_cast<std::int32_t>(i), left));
    }
    const bool has_plain = !std::ranges::all_of(launch.kernels, has_panels);
    return has_plain ? add_tasks(launch, left) : Checked<Ok>(Ok{});
  }

  void add_edges() {
    const Steps& steps = builder_.out();
    for (std::size_t id = 0; id < launches_.launches.size(); ++id) {
      for (const launch::LaunchId other : launches_.launches[id].after) {
        builder_.order(steps.last[other.index()], steps.first[id]);
      }
      for (const launch::LaunchId other : launches_.launches[id].begun) {
        builder_.order(steps.first[other.index()], steps.first[id]);
      }
    }
  }

  const Plan& plan_;
  const launch::LaunchPlan& launches_;
  const Words& words_;
  StepBuilder builder_;
  PanelSteps panels_;
  std::vector<bool> is_begun_;  // per launch: another launch begins once its waits are over
  std::int32_t groups_ = 0;     // numbers of groups so far
};

}  // namespace

std::string Steps::name(std::int64_t step, const Words& of_plan) const {
  const auto id = static_cast<std::int32_t>(step);
  const StepOrigin& origin = origins[scope.task(id)];
  const std::string launch = "launch " + std::to_string(origin.launch.value);
  std::string text;
  switch (origin.kind) {
    case StepKind::Begin:
      text = "the beginning of " + launch;
      break;
    case StepKind::End:
      text = "the end of " + launch;
      break;
    case StepKind::Task:
      text = of_plan.task(origin.task) + " in " + launch;
      break;
    case StepKind::Copy:
      text = "fused copy " + std::to_string(origin.part) + " of " + launch;
      break;
    default:
      text = "panel " + std::to_string(origin.part) + " of " + launch;
      if (origin.kernel > 0) text += ", kernel " + std::to_string(origin.kernel);
  }
  const bool is_next = static_cast<std::size_t>(id) >= scope.tasks;
  return text + (is_next ? " in the next execution" : "");
}

Checked<Steps> make_steps(const Plan& plan, const launch::LaunchPlan& launches,
                          const Words& words) {
  Steps steps;
  LaunchExpander expander(plan, launches, words, steps);
  HP_REQUIRE_OK(expander.run());
  return steps;
}

}  // namespace harpe::verifier
