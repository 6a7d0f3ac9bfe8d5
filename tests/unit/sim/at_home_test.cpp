#include "sim/at_home.h"

#include <gtest/gtest.h>

#include "sim/build.h"
#include "sim/fused_stores.h"
#include "tests/unit/sim/plans.h"

namespace harpe {
namespace at_home_test {

struct Found {
  Plan plan;
  AtHome at_home;
};

Found found_in(const std::string& target, const std::vector<std::string>& parameters,
               const std::string& mesh, const std::string& schedule) {
  Plan plan = plan_of(target, parameters, mesh, schedule);
  AtHome at_home = find_at_home(plan, find_fused_stores(plan));
  return {.plan = std::move(plan), .at_home = std::move(at_home)};
}

const std::vector<std::string> kProduct = {"m=1024", "n=1024", "k=1024"};
const std::vector<std::string> kHeads = {"seq=1024", "heads=4", "head_dim=64"};

// Per rank: roundings, those that launches do, those with the others' contributions.
void expect(const Found& found, int all, int rounded, int added) {
  int count = 0;
  int by_launch = 0;
  int with_others = 0;
  for (std::size_t i = 0; i < found.plan.tasks.size(); ++i) {
    const bool rounds = found.plan.tasks[i].kind == TaskKind::Finalise;
    count += rounds ? 1 : 0;
    EXPECT_TRUE(rounds || found.at_home.rounded[i] == 0) << i;
    by_launch += found.at_home.rounded[i];
    with_others += found.at_home.added[i];
  }
  EXPECT_EQ(count, 4 * all);
  EXPECT_EQ(by_launch, 4 * rounded);
  EXPECT_EQ(with_others, 4 * added);
}

TEST(AtHome, is_what_one_launch_makes_whole) {
  expect(found_in("ag_gemm", kProduct, "tp=4", "bulk"), 1, 1, 0);
  expect(found_in("ag_gemm", kProduct, "tp=4", "push"), 1, 1, 0);
  expect(found_in("attention", kHeads, "cp=4", "push"), 1, 1, 0);
}

// Four launches make a quarter each: what rounds them all is a pass of its own.
TEST(AtHome, is_not_what_several_launches_make) {
  expect(found_in("ag_gemm", kProduct, "tp=4", "ring"), 1, 0, 0);
}

// The last of them has all of the state, and writes it home.
TEST(AtHome, is_attention_that_is_carried_on) {
  expect(found_in("attention", kHeads, "cp=4", "ring"), 1, 1, 0);
}

TEST(AtHome, is_no_sum_of_copies) {
  expect(found_in("gemm_rs", kProduct, "tp=4", "ring"), 1, 0, 0);
  expect(found_in("gemm_rs", kProduct, "tp=4", "bulk"), 1, 0, 0);
}

// Blocks that leave are never stored here; of those that stay only the total is, rounded.
TEST(AtHome, is_the_total_of_sums_that_leave_as_they_are_made) {
  const Found found = found_in("gemm_rs", kProduct, "tp=4", "push");
  expect(found, 1, 1, 1);
  std::vector<double> written;
  for (std::size_t i = 0; i < found.plan.tasks.size(); ++i) {
    const bool first = found.plan.queues[found.plan.tasks[i].queue.index()].rank == RankId(0);
    if (first && found.plan.tasks[i].kind == TaskKind::Compute) {
      written.push_back(found.at_home.written[i]);
    }
  }
  EXPECT_EQ(written, (std::vector<double>{0.5, 0, 0, 0}));
}

// On multiprocessors it is not launched, and what it adds is a product with the identity; a core
// does it by itself.
TEST(AtHome, takes_no_launch) {
  const Plan plan = plan_of("gemm_rs", kProduct, "tp=4", "push");
  Machine machine = plain_machine(10);
  for (const std::int64_t sms : {std::int64_t{4}, std::int64_t{1}}) {
    machine.processor.sms = sms;
    const BuiltWorkload built = build_workload(plan, machine, {});
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      if (plan.tasks[i].kind != TaskKind::Finalise) continue;
      const Activity& total =
          built.workload.activities[static_cast<std::size_t>(built.work_of_task[i])];
      EXPECT_EQ(total.start.value == 0, sms > 1);
      if (sms == 1) continue;
      const double flops = 3 * 2.0 * 256 * 1024;  // three contributions, tiles of one row
      EXPECT_NEAR(total.work.seconds(), std::max(flops / 10e12, 3 * 256 * 1024 * 2 / 1000e9),
                  1e-12);
    }
  }
}

// Where intermediates pass through no memory, contributions take none.
TEST(AtHome, takes_no_memory_without_round_trips) {
  const Plan plan = plan_of("gemm_rs", kProduct, "tp=4", "push");
  SimulateOptions options;
  options.ideal.no_round_trips = true;
  const BuiltWorkload built = build_workload(plan, plain_machine(), options);
  for (const Activity& activity : built.workload.activities) {
    for (const Use& use : activity.uses) EXPECT_GT(use.rate, 0);
  }
}

}  // namespace at_home_test
}  // namespace harpe
