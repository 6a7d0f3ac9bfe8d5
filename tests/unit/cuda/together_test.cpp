#include "exec/cuda/executor/together.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace harpe::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Together, all_run_at_once_and_are_over) {
  std::atomic<int> here = 0;
  const auto failure = run_together(
      4, seconds(60),
      [&](std::size_t) -> Checked<Ok> {
        ++here;
        while (here < 4) std::this_thread::yield();
        return Ok{};
      },
      [] { FAIL() << "nobody failed"; });
  EXPECT_FALSE(failure);
  EXPECT_EQ(here, 4);
}

TEST(Together, who_fails_first_is_named_and_lets_the_others_go) {
  std::atomic<bool> is_given_up = false;
  const auto failure = run_together(
      3, seconds(60),
      [&](std::size_t which) -> Checked<Ok> {
        while (which != 1 && !is_given_up) std::this_thread::yield();
        return make_diag(DiagCode::G070, {{"ranks", which}, {"gpus", 0}});
      },
      [&] { is_given_up = true; });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->which, 1U);
  EXPECT_EQ(failure->why, make_diag(DiagCode::G070, {{"ranks", 1}, {"gpus", 0}}));
}

TEST(Together, who_does_not_come_is_not_waited_for) {
  std::atomic<bool> is_given_up = false;
  const auto failure = run_together(
      2, milliseconds(20),
      [&](std::size_t which) -> Checked<Ok> {
        while (which == 0 && !is_given_up) std::this_thread::yield();
        if (which == 1) return Ok{};
        return make_diag(DiagCode::G070, {{"ranks", 2}, {"gpus", 0}});
      },
      [&] { is_given_up = true; });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->which, 0U);
}

}  // namespace
}  // namespace harpe::cuda
