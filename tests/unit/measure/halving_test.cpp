#include "measure/halving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace harpe {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

using Times = std::vector<double>;

// Every candidate always takes the same time.
class FakeTimer {
 public:
  explicit FakeTimer(Times times) : times_(std::move(times)) {}

  [[nodiscard]] HalvingResult halve(HalvingOptions options = {}) {
    options.begin_round = [&](std::int64_t round, std::size_t left) {
      EXPECT_EQ(round, std::ssize(order_));
      order_.emplace_back();
      left_.push_back(left);
    };
    const TakeTurn turn = [&](std::size_t index) {
      order_.back().push_back(index);
      return times_[index] > 0 ? Times{times_[index], times_[index]} : Times();
    };
    return harpe::halve(times_.size(), turn, options);
  }

  // The candidates timed, by round.
  [[nodiscard]] const std::vector<std::vector<std::size_t>>& order() const { return order_; }
  [[nodiscard]] const std::vector<std::size_t>& left() const { return left_; }

 private:
  Times times_;
  std::vector<std::vector<std::size_t>> order_;
  std::vector<std::size_t> left_;
};

TEST(Halving, puts_out_the_slower_half_of_each_round) {
  FakeTimer timer({50, 20, 80, 10, 40, 70, 30, 60});
  const HalvingResult result = timer.halve();
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.rounds, 2);
  EXPECT_THAT(timer.left(), ElementsAre(8, 4));
  EXPECT_THAT(result.left, ElementsAre(3, 1));
  EXPECT_EQ(result.standings[2].rounds, 1);
  EXPECT_EQ(result.standings[6].rounds, 2);
  EXPECT_EQ(result.standings[3].median(), 10);
}

TEST(Halving, gives_all_as_many_turns_in_a_round_and_changes_who_goes_first) {
  FakeTimer timer({50, 20, 80, 10, 40});
  const HalvingResult result = timer.halve({.passes = 5});
  ASSERT_FALSE(timer.order().empty());
  for (const std::vector<std::size_t>& round : timer.order()) {
    std::map<std::size_t, int> turns;
    for (const std::size_t index : round) ++turns[index];
    for (const auto& [index, count] : turns) EXPECT_EQ(count, 5) << index;
  }
  std::vector<std::size_t> first;
  for (std::size_t turn = 0; turn < 25; turn += 5) first.push_back(timer.order()[0][turn]);
  EXPECT_THAT(first, UnorderedElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(result.standings[2].times.size(), 10U);
}

TEST(Halving, has_companions_in_every_round_that_are_never_left) {
  FakeTimer timer({50, 20, 80, 10, 40, 70, 30, 60, 5, 900, 0});
  const HalvingResult result = timer.halve({.companions = 3});
  EXPECT_THAT(timer.left(), ElementsAre(11, 7)) << "with one that failed";
  EXPECT_THAT(result.left, ElementsAre(3, 1));
  for (const std::size_t companion : {8U, 9U}) {
    EXPECT_EQ(result.standings[companion].rounds, result.rounds);
    EXPECT_EQ(result.standings[companion].times.size(), result.standings[3].times.size());
  }
  EXPECT_TRUE(result.standings[10].failed);
}

TEST(Halving, keeps_those_that_cannot_be_told_apart) {
  FakeTimer timer({100, 100.3, 100.2, 100.1, 200, 300});
  const HalvingResult result = timer.halve();
  // The third ends the faster half and the fourth is as fast; two rounds alike then end it.
  EXPECT_THAT(timer.left(), ElementsAre(6, 4, 4));
  EXPECT_THAT(result.left, ElementsAre(0, 3, 2, 1));
}

TEST(Halving, keeps_those_within_the_noise_of_their_times) {
  std::vector<std::size_t> calls(4, 0);
  const TakeTurn noisy = [&](std::size_t index) {
    const double middle = 100 + 2 * static_cast<double>(index);
    const double off = ++calls[index] % 2 == 0 ? 0.5 : -0.5;
    return Times{middle * (1 + off), middle, middle * (1 - off)};
  };
  const HalvingResult wide = halve(4, noisy, {});
  EXPECT_EQ(wide.left.size(), 4U);
  const TakeTurn steady = [&](std::size_t index) {
    return Times{100 + 2 * static_cast<double>(index)};
  };
  EXPECT_THAT(halve(4, steady, {}).left, ElementsAre(0, 1));
}

TEST(Halving, ends_where_it_is_told_to_with_what_there_is) {
  FakeTimer timer({50, 20, 80, 10, 40, 70, 30, 60});
  int asked = 0;
  const HalvingResult result = timer.halve({.is_over = [&] { return ++asked > 8 * 3 + 2; }});
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.rounds, 1);
  EXPECT_EQ(timer.order().back().size(), 2U);
  EXPECT_THAT(result.left, ElementsAre(3, 1, 6, 4));

  FakeTimer begun({50, 20, 80});
  asked = 0;
  const HalvingResult early = begun.halve({.is_over = [&] { return ++asked > 1; }});
  EXPECT_THAT(early.left, ElementsAre(0)) << "the others had no turn";
  EXPECT_TRUE(early.standings[1].times.empty());
}

TEST(Halving, goes_on_without_those_that_fail) {
  FakeTimer timer({50, 0, 10});
  const HalvingResult result = timer.halve();
  EXPECT_TRUE(result.standings[1].failed);
  EXPECT_EQ(std::ranges::count(timer.order()[0], std::size_t{1}), 1);
  EXPECT_THAT(result.left, ElementsAre(2, 0));
  FakeTimer none({0, 0});
  EXPECT_TRUE(none.halve().left.empty());
  EXPECT_TRUE(halve(0, [](std::size_t) { return Times(); }, {}).left.empty());
}

TEST(Halving, times_one_alone_too) {
  FakeTimer timer({7});
  const HalvingResult result = timer.halve();
  EXPECT_THAT(result.left, ElementsAre(0));
  EXPECT_EQ(result.standings[0].rounds, 1);
}

}  // namespace
}  // namespace harpe
