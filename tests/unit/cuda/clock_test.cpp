#include "exec/cuda/signals/clock.h"

#include <gtest/gtest.h>

#include <vector>

namespace harpe::cuda {
namespace {

constexpr std::int64_t kOffset = 1'000'000;  // host clock minus GPU clock

// The GPU reads its clock at host time `read`; its clock shows multiples of `step`.
ClockSample sample(std::int64_t asked, std::int64_t read, std::int64_t answered,
                   std::int64_t step = 1) {
  return {.asked = asked, .gpu = (read - kOffset) / step * step, .answered = answered};
}

TEST(Clock, is_found_between_the_question_and_the_answer) {
  const ClockSample samples[] = {sample(5'000'000, 5'000'400, 5'002'000)};
  const ClockOffset found = offset_of(samples, 0);
  EXPECT_EQ(found.uncertainty, 1000);
  EXPECT_EQ(found.offset, kOffset + 600);
  EXPECT_EQ(found.at, 5'002'000);
}

// One sample has a fast question, another a fast answer: together they narrow the offset further.
TEST(Clock, is_known_better_by_every_sample) {
  const ClockSample samples[] = {sample(5'000'000, 5'000'100, 5'002'000),
                                 sample(5'010'000, 5'011'500, 5'011'700),
                                 sample(5'020'000, 5'021'500, 5'029'000)};
  const ClockOffset found = offset_of(samples, 0);
  EXPECT_EQ(found.uncertainty, 150);
  EXPECT_EQ(found.offset, kOffset + 50);
}

// For any delays the truth lies within the uncertainty, even with coarse clocks.
TEST(Clock, is_never_further_off_than_it_says) {
  for (const std::int64_t step : {1, 32, 1000}) {
    for (std::int64_t seed = 1; seed < 200; ++seed) {
      std::vector<ClockSample> samples;
      std::int64_t now = 9'000'000 + seed * 7919;
      for (std::int64_t i = 0; i < 5; ++i) {
        const std::int64_t there = 300 + (seed * 31 + i * 977) % 1900;
        const std::int64_t back = 300 + (seed * 57 + i * 389) % 1700;
        samples.push_back(sample(now, now + there, now + there + back, step));
        now += there + back + 113;
      }
      const ClockOffset found = offset_of(samples, step);
      // The true time `now` as a stamp of the GPU's clock.
      const std::int64_t stamp = (now - kOffset) / step * step;
      EXPECT_LE(std::abs(stamp + found.offset - now), found.uncertainty) << step << " " << seed;
    }
  }
}

// If clocks drift between samples, the samples may exclude each other; the gap is the uncertainty.
TEST(Clock, says_what_samples_that_exclude_each_other_leave_open) {
  const ClockSample samples[] = {{.asked = 1000, .gpu = 0, .answered = 1100},
                                 {.asked = 2000, .gpu = 800, .answered = 2100}};
  const ClockOffset found = offset_of(samples, 0);
  EXPECT_EQ(found.offset, 1150);
  EXPECT_EQ(found.uncertainty, 50);
}

TEST(Clock, drifts_on_a_line_between_two_looks) {
  const ClockFit fit{.before = {.at = 1000, .offset = 1000, .uncertainty = 3},
                     .after = {.at = 2000, .offset = 1010, .uncertainty = 4}};
  EXPECT_EQ(fit.to_host(0), 1000);
  EXPECT_EQ(fit.to_host(500), 1505);
  EXPECT_EQ(fit.to_host(1000), 2010);
  EXPECT_EQ(fit.uncertainty(), 4);
}

}  // namespace
}  // namespace harpe::cuda
