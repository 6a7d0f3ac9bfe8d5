#include "exec/kernel_times.h"

#include <gtest/gtest.h>

namespace harpe {
namespace {

using std::chrono::nanoseconds;

KernelEvent event_of(std::int64_t kernel, KernelPart part, int start, int end,
                     bool copies = false) {
  return {.kernel = TaskId(kernel),
          .part = part,
          .copies = copies,
          .start = nanoseconds(start),
          .end = nanoseconds(end)};
}

TEST(KernelTimes, span_all_blocks_and_keep_the_stands_of_those_that_multiply) {
  const std::vector<KernelEvent> events = {
      event_of(3, KernelPart::Held, 5, 10),        event_of(3, KernelPart::Work, 14, 90),
      event_of(3, KernelPart::Stand, 20, 40),      event_of(3, KernelPart::Work, 12, 70),
      event_of(3, KernelPart::Work, 11, 95, true), event_of(3, KernelPart::Stand, 11, 50, true),
      event_of(8, KernelPart::Held, 100, 110),
  };
  const std::map<TaskId, KernelTimes> kernels = times_of(events);
  ASSERT_EQ(kernels.size(), 1U) << "of the other no block was launched";
  const KernelTimes& kernel = kernels.at(TaskId(3));
  EXPECT_EQ(kernel.reached, nanoseconds(5));
  EXPECT_EQ(kernel.launched, nanoseconds(10));
  EXPECT_EQ(kernel.begin, nanoseconds(11));
  EXPECT_EQ(kernel.end, nanoseconds(95));
  EXPECT_EQ(kernel.blocks, 2);
  EXPECT_EQ(kernel.stands, (std::vector<KernelEvent>{events[2]}));
}

TEST(KernelTimes, count_what_lies_within_as_a_mean_over_blocks) {
  KernelTimes kernel;
  kernel.blocks = 4;
  kernel.stands = {event_of(0, KernelPart::Stand, 10, 30), event_of(0, KernelPart::Stand, 20, 40),
                   event_of(0, KernelPart::Stand, 70, 90)};
  EXPECT_EQ(stood_within(kernel, nanoseconds(0), nanoseconds(100)), nanoseconds(60 / 4));
  EXPECT_EQ(stood_within(kernel, nanoseconds(20), nanoseconds(80)), nanoseconds(40 / 4));
  EXPECT_EQ(stood_within(kernel, nanoseconds(40), nanoseconds(70)), nanoseconds(0));
}

TEST(StandingBlocks, are_counted_from_each_change_on) {
  const std::vector<KernelEvent> events = {
      event_of(0, KernelPart::Held, 0, 5),
      event_of(0, KernelPart::Work, 5, 100),
      event_of(0, KernelPart::Stand, 10, 30),
      event_of(0, KernelPart::Stand, 15, 30),
      event_of(0, KernelPart::Stand, 12, 12),
      event_of(0, KernelPart::Stand, 20, 40, true),
      // One stop ends where another begins, so the count does not change.
      event_of(0, KernelPart::Stand, 50, 60),
      event_of(0, KernelPart::Stand, 60, 70),
  };
  const auto count = [](int since, std::int64_t multiplying, std::int64_t copying) {
    return StandingBlocks{nanoseconds(since), multiplying, copying};
  };
  EXPECT_EQ(standing_blocks(events),
            (std::vector<StandingBlocks>{count(10, 1, 0), count(15, 2, 0), count(20, 2, 1),
                                         count(30, 0, 1), count(40, 0, 0), count(50, 1, 0),
                                         count(70, 0, 0)}));
  EXPECT_TRUE(standing_blocks({}).empty());
}

}  // namespace
}  // namespace harpe
