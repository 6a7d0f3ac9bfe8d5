#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/proxy_plan.h"
#include "tests/unit/launch/pass_run.h"

// All-gather + GEMM on two ranks: on rank 0, tasks 18, 20, … 32 are one kernel of the schedule.
namespace harpe::launch::passing {
namespace wait_before_test {

const std::vector<void (*)(Draft&)> kPasses = {join_panels, read_in_place, wait_before};

TEST(WaitBefore, moves_waits_before_kernels_where_ranks_share_sms) {
  Abilities can;
  can.shares_sms = true;
  PassRun it(harpe::test::push_plan(), can);
  it.run(kPasses);
  EXPECT_EQ(it.decided(18), "applied");
  std::vector<SignalId> awaits;
  for (const std::int64_t copy : {10, 11, 12, 13}) awaits.push_back(*it.signal_from(copy, 0));
  EXPECT_EQ(it.launch_of(18).awaits, awaits) << "what is read in place is not awaited";
  for (const Arrival& arrival : it.launch_of(18).kernels.front().arrivals) {
    EXPECT_EQ(arrival.when, std::nullopt);
  }
  EXPECT_FALSE(it.draft->step_of(TaskId(18)).waits_inside);
}

TEST(WaitBefore, waits_once_for_what_several_wait_for) {
  Abilities can;
  can.shares_sms = true;
  PassRun it(harpe::test::push_plan(), can);
  it.wiring.tasks[28].waits = it.wiring.tasks[26].waits;
  it.run(kPasses);
  EXPECT_EQ(it.launch_of(18).awaits.size(), 3U);
}

TEST(WaitBefore, leaves_kernels_alone_that_have_a_gpu_of_their_own) {
  PassRun it(harpe::test::push_plan());
  it.run(kPasses);
  EXPECT_EQ(it.decided(18), "");
  EXPECT_EQ(it.launch_of(18), it.launch_before(18));
  EXPECT_TRUE(it.draft->step_of(TaskId(18)).waits_inside);
}

}  // namespace wait_before_test
}  // namespace harpe::launch::passing
