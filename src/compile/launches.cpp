#include "compile/launches.h"

#include <algorithm>

#include "compile/certify_launches.h"
#include "exec/cuda/target/launch_target.h"
#include "exec/cuda/target/made_up_binding.h"
#include "exec/describe.h"
#include "launch/make_launches.h"
#include "plan/launch_text.h"
#include "support/check.h"

namespace harpe {

std::vector<std::string> launch_pass_names() {
  std::vector<std::string> names;
  for (const std::string_view name : launch::pass_names()) names.emplace_back(name);
  return names;
}

namespace {

// The least number of SMs of a GPU: kernels leave up to eight SMs free, and need more than those.
constexpr std::int64_t kLeastOfGpu = 16;

// Checks that the launch plan reads back, and proves it.
void check_launches(const Plan& plan, const Blocks& blocks, const launch::LaunchPlan& launches) {
  const std::string text = launch::print_launches(plan, blocks, launches);
  const auto again = launch::parse_launches(text, "", plan, blocks);
  HP_CHECK(again.ok(), "does not read back: " + render(again.error()) + "\n" + text);
  HP_CHECK(*again == launches, "reads back as other launches:\n" + text);
  const Checked<Ok> proved = prove_if_modelled(plan, launches);
  HP_CHECK(proved.ok(), "is not proved: " + render(proved.error()) + "\n" + text);
}

std::string print_ids(const std::vector<TaskId>& tasks) {
  std::string text;
  for (const TaskId task : tasks) text += " " + std::to_string(task.value);
  return text;
}

// True if decisions about one task are decisions about the other.
bool are_one(const launch::Draft& draft, TaskId one, TaskId other) {
  return one == other || draft.step_at[one.index()] == draft.step_at[other.index()] ||
         (draft.groups.is_inside(one) && draft.groups.of(one) == draft.groups.of(other));
}

std::string explain_task(const launch::Draft& draft, TaskId task) {
  std::string text = "task " + std::to_string(task.value) + ": " +
                     describe(draft.plan, draft.blocks, task) + "\nlaunched with" +
                     print_ids(draft.steps[draft.step_at[task.index()]].launch.does) + "\n";
  bool is_known = false;
  for (const launch::Decision& decision : draft.decisions) {
    if (!are_one(draft, decision.task, task)) continue;
    is_known = true;
    text += std::string(decision.pass) + ", task " + std::to_string(decision.task.value) + ": " +
            print(decision) + "\n";
  }
  return is_known ? text : text + "no pass has a rule for it\n";
}

}  // namespace

Checked<launch::LaunchPlan> make_gpu_launches(const Plan& plan) {
  HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  return launch::make_launches(plan, blocks, cuda::LaunchTarget({}));
}

launch::LaunchPlan launches_on(const Plan& plan, const Machine& machine,
                               const SimulatedLaunches& how) {
  const bool fits = static_cast<double>(arena_bytes(plan)) <= machine.processor.memory_bytes;
  if (machine.processor.sms < kLeastOfGpu || !fits) return {};
  const Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
  HP_CHECK(blocks.ok(), "a plan's form fits its program");
  const auto sms = static_cast<int>(machine.processor.sms);
  Checked<launch::LaunchPlan> made = launch::make_launches(
      plan, *blocks, cuda::LaunchTarget({.multiprocessors = sms, .collectives = how.collectives}),
      {.without = how.without});
  return made.ok() ? *std::move(made) : launch::LaunchPlan();
}

Checked<std::string> show_launches(const Plan& plan, const launch::Target& target, bool paranoid) {
  HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  HP_TRY(const launch::LaunchPlan launches, launch::make_launches(plan, blocks, target));
  if (paranoid) check_launches(plan, blocks, launches);
  return launch::print_launches(plan, blocks, launches);
}

Checked<Ok> check_gpu_launches(const Plan& plan) {
  static constexpr cuda::DescribedTarget kTargets[] = {{},
                                                       {.shares_gpus = true},
                                                       {.collectives = CollectiveEngine::Nccl},
                                                       {.takes_turns = true},
                                                       {.shares_gpus = true, .takes_turns = true}};
  HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  for (const cuda::DescribedTarget& target : kTargets) {
    HP_TRY(const launch::LaunchPlan launches,
           launch::make_launches(plan, blocks, cuda::LaunchTarget(target)));
    check_launches(plan, blocks, launches);
    const Checked<Ok> bound = cuda::check_binding(plan, blocks, launches, target);
    HP_CHECK(bound.ok(), "does not bind: " + render(bound.error()));
  }
  return Ok{};
}

Checked<std::string> show_launches_after(const Plan& plan, const launch::Target& target,
                                         std::string_view pass) {
  HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  std::string text;
  const launch::LaunchOptions options{
      .after_pass = [&](std::string_view name, const launch::Draft& draft) {
        if (name == pass) text = launch::print_launches(plan, blocks, draft.plan_so_far());
      }};
  HP_REQUIRE_OK(launch::make_launches(plan, blocks, target, options));
  return text;
}

Checked<std::string> explain_launch(const Plan& plan, const launch::Target& target, TaskId task) {
  HP_TRY(const Blocks blocks, Blocks::make(plan.program, plan.mesh, plan.form));
  const std::string_view last = launch::pass_names().back();
  std::string text;
  const launch::LaunchOptions options{
      .after_pass = [&](std::string_view name, const launch::Draft& draft) {
        if (name == last) text = explain_task(draft, task);
      }};
  HP_REQUIRE_OK(launch::make_launches(plan, blocks, target, options));
  return text;
}

}  // namespace harpe
