// A bias and a gelu behind GEMMs under every schedule, as CPU ranks and as H200s launch them, fused
// into the GEMM kernels where possible. Results are within the derived bound of the f64 meaning,
// and have the same bits unless fusion skips a rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "compile/session.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/cuda/target/launch_target.h"
#include "launch/make_launches.h"
#include "run/check.h"
#include "run/run.h"
#include "schedule/named/registry.h"
#include "tests/support/linear.h"
#include "verify/verify_launches.h"

namespace harpe::test {
namespace {

std::map<std::string, HostTensor> execute(Checked<std::unique_ptr<Executor>> executor,
                                          const TensorMap& inputs) {
  if (!executor.ok()) {
    ADD_FAILURE() << render(executor.error());
    return {};
  }
  for (const auto& [name, tensor] : inputs) (void)(*executor)->set_input(name, tensor).value();
  const Result<RunStats, FaultReport> stats = (*executor)->run({.iterations = 2});
  if (!stats.ok()) {
    ADD_FAILURE() << render(stats.error());
    return {};
  }
  return {{"y", (*executor)->output("y").value()}};
}

template <class Test>
bool any_panel(const launch::LaunchPlan& launches, const Test& test) {
  return std::ranges::any_of(launches.launches, [&](const launch::Launch& launch) {
    return std::ranges::any_of(launch.kernels, [&](const launch::Kernel& kernel) {
      return std::ranges::any_of(kernel.panels, test);
    });
  });
}

class Tally {
 public:
  int plans = 0;
  int mapped = 0;  // launch plans with maps in kernels

  void check(const Linear& linear, const std::string& mesh) {
    SCOPED_TRACE(name_of(linear, mesh));
    Session session(true);
    const Checked<Plan> plan = session.plan(ask(linear, mesh));
    ASSERT_TRUE(plan.ok()) << render(plan.error());
    ++plans;
    const std::uint64_t seed = static_cast<std::uint64_t>(plans);
    RunRequest drawn;
    drawn.seed = seed;
    const Checked<TensorMap> inputs = prepare_run(*plan, drawn);
    ASSERT_TRUE(inputs.ok()) << render(inputs.error());
    const auto outputs = execute(make_cpu_executor(*plan, {}), *inputs);
    expect_right(*plan, *inputs, outputs, seed);
    const Blocks blocks = Blocks::make(plan->program, plan->mesh, plan->form).value();
    for (const bool shares : {false, true}) {
      const cuda::LaunchTarget target({.shares_gpus = shares});
      const auto launches = launch::make_launches(*plan, blocks, target);
      ASSERT_TRUE(launches.ok()) << render(launches.error());
      compare(linear, *plan, *launches, *inputs, outputs);
    }
  }

 private:
  static void expect_right(const Plan& plan, const TensorMap& inputs,
                           const std::map<std::string, HostTensor>& outputs, std::uint64_t seed) {
    const Checked<CheckReport> report = check_outputs(plan, inputs, outputs, seed, 1);
    ASSERT_TRUE(report.ok()) << render(report.error());
    if (!report->passed()) ADD_FAILURE() << render(failure_of(*report));
  }

  void compare(const Linear& linear, const Plan& plan, const launch::LaunchPlan& launches,
               const TensorMap& inputs, const std::map<std::string, HostTensor>& expected) {
    const bool is_mapped =
        any_panel(launches, [](const launch::Panel& panel) { return !panel.maps.empty(); });
    const bool reorders =
        any_panel(launches, [](const launch::Panel& panel) { return panel.addends.size() > 1; });
    const auto proved = verify_launches(plan, launches);
    if (!proved.ok()) {  // a plain kernel for partial tiles states no places
      EXPECT_TRUE(!is_mapped && linear.m % 16 != 0) << render(proved.error());
      return;
    }
    mapped += is_mapped ? 1 : 0;
    const auto outputs = execute(make_cpu_executor(plan, launches, {}), inputs);
    expect_right(plan, inputs, outputs, 1);
    if (reorders || (is_mapped && linear.state != "f32")) return;
    EXPECT_EQ(outputs.at("y").data, expected.at("y").data) << "depends on the launches";
  }
};

TEST(Maps, are_right_in_the_kernels_that_make_what_they_are_applied_to) {
  Tally tally;
  for (const char* op : {"gemm", "ag_gemm", "gemm_rs", "gemm_ar"}) {
    for (const NamedSchedule& schedule : schedules_of(op)) {
      for (const char* mesh : {"x=1", "x=2", "x=4"}) {
        Session session(false);
        Linear linear{.op = op, .schedule = std::string(schedule.name), .m = 96, .n = 96, .k = 96};
        if (!session
                 .schedule({.target = op,
                            .parameters = {"m=96", "n=96", "k=96"},
                            .mesh = mesh,
                            .schedule = linear.schedule})
                 .ok()) {
          continue;
        }
        for (const bool gelu : {false, true}) {
          linear.has_gelu = gelu;
          linear.state = "f32";
          tally.check(linear, mesh);
          linear.state = linear.dtype = gelu ? "bf16" : "f16";
          tally.check(linear, mesh);
          linear.dtype = "bf16";
        }
      }
    }
  }
  Linear odd{.op = "ag_gemm", .schedule = "push", .m = 37, .n = 53, .k = 29};
  tally.check(odd, "x=2");
  odd.k = 64;
  tally.check(odd, "x=3");
  std::printf("%d plans, %d launch plans with maps in kernels\n", tally.plans, tally.mapped);
  EXPECT_GT(tally.mapped, 20);
}

}  // namespace
}  // namespace harpe::test
