#include "plan/launch_text.h"

#include <fstream>
#include <iterator>

#include "tests/unit/plan/launch_fixture.h"

namespace harpe::launch {
namespace {

std::string printed(const Plan& plan, const LaunchPlan& launches) {
  return print_launches(plan, test::blocks_of(plan), launches);
}

void expect_round_trip(const LaunchPlan& launches, const Plan& plan) {
  const std::string text = printed(plan, launches);
  const Checked<LaunchPlan> back = parse_launches(text, "", plan, test::blocks_of(plan));
  ASSERT_TRUE(back.ok()) << render(back.error()) << "\n" << text;
  EXPECT_TRUE(*back == launches) << text;
  EXPECT_EQ(printed(plan, *back), text);
}

TEST(LaunchText, says_everything_a_launch_plan_can_say) {
  std::ifstream file(std::string(HARPE_SOURCE_DIR) + "/tests/unit/plan/ring.launches");
  const std::string expected((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(printed(test::grouped_ring(), test::ring_launches()), expected);
}

TEST(LaunchText, reads_back_as_the_launch_plan_it_was_printed_from) {
  expect_round_trip(test::ring_launches(), test::grouped_ring());
}

TEST(LaunchText, carries_a_launch_plan_that_launches_nothing) {
  expect_round_trip({}, test::ring());
}

TEST(LaunchText, takes_comments_blank_lines_and_any_indentation) {
  const Plan plan = test::ring();
  const std::string text = "// by hand\n\nlaunches version 1 plan \"" + hash_plan(plan) +
                           "\" target \"t\" // of nothing\n   signal 0 rank 1 ring_space 0\n\n";
  const Checked<LaunchPlan> launches = parse_launches(text, "", plan, test::blocks_of(plan));
  ASSERT_TRUE(launches.ok()) << render(launches.error());
  EXPECT_EQ(launches->target, "t");
  ASSERT_EQ(launches->signals.size(), 1U);
  EXPECT_EQ(launches->signals.front().kind, SignalKind::RingSpace);
}

TEST(LaunchText, names_the_rank_of_an_allocation_on_another_one) {
  LaunchPlan launches;
  launches.launches.resize(1);
  launches.launches.front().rank = RankId(1);
  launches.launches.front().queue = QueueId(3);
  Kernel& kernel = launches.launches.front().kernels.emplace_back();
  kernel.name = "k";
  kernel.arrivals.push_back(
      {.reads = {test::place(0, {{0, 6}, {1, 2}}), test::place(5, {{2, 4}, {0, 5}})}, .when = {}});
  const std::string text = printed(test::ring(), launches);
  EXPECT_NE(text.find("    arrival 0 reads A.home@0[*, 1:2] A.home[2:4, *]\n"), std::string::npos)
      << text;
  expect_round_trip(launches, test::ring());
}

TEST(HashPlan, is_the_one_of_the_first_line) {
  const std::string text = print_plan(test::ring());
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "plan version 1 hash \"" + hash_plan(test::ring()) + "\"");
}

}  // namespace
}  // namespace harpe::launch
