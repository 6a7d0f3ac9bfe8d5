#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "launch/make_launches.h"
#include "tests/unit/exec/plans.h"
#include "tests/unit/launch/fake_target.h"

namespace harpe::launch {
namespace passes_test {

// `stores_at_home`: kernels store to homes what other tasks would round.
passing::Abilities abilities(bool stores_at_home) {
  passing::Abilities can;
  can.can = [=](const Launch& launch, const Kernel&) {
    return stores_at_home || launch.does.size() == 1;
  };
  return can;
}

struct Made {
  LaunchPlan begun;  // behind `begin`
  LaunchPlan launches;
  std::vector<Decision> decisions;
};

Made make(const Plan& plan, const passing::Abilities& can) {
  const Blocks blocks = Blocks::make(plan.program, plan.mesh, plan.form).value();
  Made made;
  const LaunchOptions options{.after_pass = [&](std::string_view pass, const Draft& draft) {
    if (pass == pass_names().front()) made.begun = draft.plan_so_far();
    made.decisions = draft.decisions;
  }};
  made.launches = make_launches(plan, blocks, passing::FakeTarget(can), options).value();
  return made;
}

std::vector<Plan> plans() {
  return {test::exchange(3, 12, false), test::exchange(3, 12, true),
          test::gather_gemm(4, 8, 8, 8, "bf16"), test::scatter_gemm(2, 8, 8, 8, "bf16", true),
          test::scatter_gemm(3, 9, 8, 9, "bf16", false)};
}

std::vector<int> times_done(const Plan& plan, const LaunchPlan& launches) {
  std::vector<int> done(plan.tasks.size(), 0);
  for (const Launch& launch : launches.launches) {
    for (const TaskId id : launch.does) ++done[id.index()];
  }
  return done;
}

TEST(Passes, begin_with_a_launch_for_each_task) {
  for (const Plan& plan : plans()) {
    const Made made = make(plan, {});
    EXPECT_EQ(made.begun.launches.size(), plan.tasks.size());
    EXPECT_EQ(made.begun.signals, made.launches.signals);
  }
}

TEST(Passes, do_every_task_once_behind_what_it_follows) {
  for (const Plan& plan : plans()) {
    for (const bool stores_at_home : {true, false}) {
      const Made made = make(plan, abilities(stores_at_home));
      const std::vector<int> done = times_done(plan, made.launches);
      EXPECT_EQ(std::ranges::count(done, 1), static_cast<std::ptrdiff_t>(done.size()));
      for (std::size_t i = 0; i < made.launches.launches.size(); ++i) {
        for (const LaunchId from : made.launches.launches[i].after) EXPECT_LT(from.index(), i);
      }
    }
  }
}

// Counts totals that a GEMM may store at home: one source right behind it in its queue.
std::size_t count_roundings(const Plan& plan, const LaunchPlan& launches) {
  return static_cast<std::size_t>(
      std::ranges::count_if(launches.launches, [&](const Launch& launch) {
        return launch.does.size() > 1 &&
               plan.tasks[launch.does.back().index()].kind == TaskKind::Finalise;
      }));
}

TEST(Passes, store_at_home_what_a_total_would_only_round) {
  const Plan plan = test::gather_gemm(1, 8, 8, 8, "bf16");
  const Made made = make(plan, {});
  ASSERT_EQ(count_roundings(plan, made.launches), 1U);
  for (const Launch& launch : made.launches.launches) {
    if (launch.does.size() == 1) continue;
    const Panel& panel = launch.kernels.at(0).panels.at(0);
    EXPECT_EQ(plan.allocs[panel.stores.front().alloc.index()].level, Level::Home);
    EXPECT_EQ(panel.dtype, DType::BF16);
    EXPECT_EQ(launch.kernels[0].variant, "panels 1");
  }
}

TEST(Passes, leave_alone_what_no_kernel_does_and_say_why) {
  const Plan plan = test::gather_gemm(1, 8, 8, 8, "bf16");
  const Made made = make(plan, abilities(false));
  EXPECT_EQ(count_roundings(plan, made.launches), 0U);
  const auto refused = std::ranges::find_if(made.decisions, [](const Decision& decision) {
    return decision.refused == Reason::NoKernel;
  });
  ASSERT_NE(refused, made.decisions.end());
  EXPECT_EQ(refused->pass, "store_at_home");
  EXPECT_EQ(plan.tasks[refused->task.index()].kind, TaskKind::Finalise);
  EXPECT_EQ(print(*refused),
            "no kernel of the target does the 1 panels and 1 arrivals in one launch");
}

TEST(Passes, name_the_target_and_that_it_is_shared) {
  const Plan plan = test::exchange(2, 8, false);
  EXPECT_EQ(make(plan, {}).launches.target, "fake sms 64");
  EXPECT_EQ(make(plan, {.shares_sms = true}).launches.target, "fake sms 64 shared");
}

TEST(Passes, print_every_reason_with_its_numbers) {
  int reasons = 0;
#define HP_REASON(NAME, TEXT)                                                                 \
  {                                                                                           \
    const Decision decision{.pass = "", .task = {}, .refused = Reason::NAME, .a = 7, .b = 8}; \
    EXPECT_EQ(print(decision).find('{'), std::string::npos) << #NAME;                         \
    ++reasons;                                                                                \
  }
#include "launch/reasons.def"
#undef HP_REASON
  EXPECT_GT(reasons, 10);
}

}  // namespace passes_test
}  // namespace harpe::launch
