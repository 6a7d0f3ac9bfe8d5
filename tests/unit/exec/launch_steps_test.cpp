#include "exec/cpu/launch_steps.h"

#include <map>

#include "plan/ref_layouts.h"
#include "tests/unit/exec/fixture.h"
#include "tests/unit/exec/steps.h"

namespace harpe::test {
namespace {

using launch::Launch;
using launch::LaunchId;
using launch::LaunchPlan;

// The launches of CPU ranks, but with one launch per SM queue, whose kernel does all tasks of the
// queue.
LaunchPlan join_queues(const Plan& plan, const std::vector<launch::Kernel>& kernels) {
  const LaunchPlan alone = cpu::launches_of(plan, false).value();
  LaunchPlan joined;
  joined.signals = alone.signals;
  std::vector<LaunchId> ids;
  std::map<QueueId, LaunchId> of_queue;
  for (const Launch& launch : alone.launches) {
    const bool computes = plan.queues[launch.queue.index()].kind == QueueKind::Sm;
    const LaunchId next(static_cast<std::int64_t>(joined.launches.size()));
    const LaunchId id = computes ? of_queue.try_emplace(launch.queue, next).first->second : next;
    ids.push_back(id);
    if (id == next) {
      joined.launches.push_back(launch);
      if (computes) joined.launches.back().kernels = {kernels[launch.rank.index()]};
      continue;
    }
    Launch& into = joined.launches[id.index()];
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(into.does, launch.does);
    append(into.after, launch.after);
    append(into.awaits, launch.awaits);
    append(into.raises, launch.raises);
  }
  for (Launch& launch : joined.launches) {
    for (LaunchId& other : launch.after) other = ids[other.index()];
  }
  return joined;
}

// Each rank's kernel: its panels are the rank's GEMMs, stored where the plan rounds them.
std::vector<launch::Kernel> kernels_of(const Plan& plan) {
  const Blocks blocks = Blocks::make(plan.program, plan.mesh, plan.form).value();
  launch::RefLayouts layouts(plan, blocks);
  std::vector<launch::Kernel> kernels(static_cast<std::size_t>(plan.mesh.ranks()));
  for (const Task& task : plan.tasks) {
    launch::Kernel& kernel = kernels[plan.queues[task.queue.index()].rank.index()];
    kernel.name = "gemm";
    if (task.kind == TaskKind::Compute) {
      launch::Panel panel{.meets = {static_cast<std::int32_t>(kernel.arrivals.size())}};
      panel.stores = {*layouts.place_of(task.writes.front())};
      kernel.panels.push_back(std::move(panel));
      kernel.arrivals.push_back(
          {.reads = {*layouts.place_of(task.reads[0]), *layouts.place_of(task.reads[1])},
           .when = {}});
    }
    if (task.kind != TaskKind::Finalise) continue;
    for (launch::Panel& panel : kernel.panels) {
      panel.stores.front().alloc = task.writes.front().alloc;
      panel.dtype = plan.allocs[task.writes.front().alloc.index()].dtype;
    }
  }
  return kernels;
}

HostTensor result_of(const Plan& plan, const LaunchPlan& launches) {
  const Subject alone = prepare(plan);
  auto executor = make_cpu_executor(plan, launches, {}).value();
  for (const auto& [name, tensor] : alone.inputs) (void)executor->set_input(name, tensor).value();
  EXPECT_TRUE(executor->run({.iterations = 2}).ok());
  return executor->output("c").value();
}

TEST(LaunchSteps, make_a_collective_of_three_and_other_tasks_of_one) {
  const Plan plan = exchange(2, 8, true);
  for (const std::vector<cpu::Step>& queue : steps_of(plan).queues) {
    for (std::size_t at = 0; at < queue.size(); ++at) {
      if (!queue[at].begins) continue;
      const Task& task = plan.tasks[queue[at].task.index()];
      const std::size_t last = at + (task.kind == TaskKind::Collective ? 2 : 0);
      EXPECT_TRUE(queue[last].ends) << "task " << queue[at].task.value;
    }
  }
}

TEST(LaunchSteps, give_every_panel_a_step) {
  const Plan plan = gather_gemm(3, 12, 12, 12, "bf16");
  const auto steps = cpu::make_steps(plan, join_queues(plan, kernels_of(plan))).value();
  for (std::size_t queue = 0; queue < steps.queues.size(); ++queue) {
    if (plan.queues[queue].kind != QueueKind::Sm) continue;
    EXPECT_EQ(steps.queues[queue].size(), 3U);
    EXPECT_FALSE(steps.queues[queue].front().waits.empty());
  }
}

TEST(LaunchSteps, leave_the_bits_of_tasks_that_panels_do) {
  for (const char* dtype : {"f32", "bf16", "f64"}) {
    const Plan plan = gather_gemm(3, 13, 12, 11, dtype);
    const HostTensor joined = result_of(plan, join_queues(plan, kernels_of(plan)));
    EXPECT_EQ(joined.data, result_of(plan, cpu::launches_of(plan, false).value()).data) << dtype;
  }
}

TEST(LaunchSteps, show_a_panel_that_is_not_stored_as_not_a_number) {
  const Plan plan = gather_gemm(2, 4, 4, 4, "f32");
  std::vector<launch::Kernel> kernels = kernels_of(plan);
  kernels[0].panels.pop_back();
  const HostTensor c = result_of(plan, join_queues(plan, kernels));
  EXPECT_FALSE(std::isnan(load(c, 0)));
  EXPECT_TRUE(std::isnan(load(c, 8)));
  EXPECT_FALSE(std::isnan(load(c, 10))) << "of the other rank";
}

TEST(LaunchSteps, refuse_kernels_and_places_that_cannot_be) {
  const Plan plan = gather_gemm(2, 4, 4, 4, "f32");
  const auto finding = [&](const std::vector<launch::Kernel>& kernels) {
    const auto made = make_cpu_executor(plan, join_queues(plan, kernels), {});
    return made.ok() ? "none" : render(made.error());
  };
  std::vector<launch::Kernel> kernels = kernels_of(plan);
  kernels[0].arrivals[0].reads.front() = kernels[0].panels[0].stores.front();
  EXPECT_EQ(finding(kernels),
            "error[V704]: `gemm` of launch 2 on rank 0 does no statement of the launch's tasks");
  kernels = kernels_of(plan);
  kernels[0].panels[0].dtype = DType::BF16;
  EXPECT_EQ(finding(kernels),
            "error[V704]: `gemm` of launch 2 on rank 0 stores bf16 where f32 lies");
  kernels = kernels_of(plan);
  kernels[0].panels[0].stores.front().span[0] = {.begin = 0, .end = 9};
  EXPECT_EQ(finding(kernels),
            "error[V705]: `gemm` of launch 2 on rank 0 names a place in `c.home` of rank 0, which "
            "cannot hold all of it");
  LaunchPlan landing = cpu::launches_of(plan, false).value();
  landing.launches[1].lands = true;
  EXPECT_EQ(render(make_cpu_executor(plan, landing, {}).error()),
            "error[V202]: launch 1, which lands a put of another host, cannot be verified");
}

}  // namespace
}  // namespace harpe::test
