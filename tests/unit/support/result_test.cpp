#include "support/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace harpe {
namespace {

using Outcome = Result<int, std::string>;
using Text = std::vector<char>;

Outcome half(int value) {
  if (value % 2 != 0) return std::string("odd");
  return value / 2;
}

Result<double, std::string> quarter(int value) {
  HP_TRY(const int first, half(value));
  HP_TRY(const int second, half(first));
  return second;
}

Result<Ok, std::string> require_even(int value, int& reached) {
  ++reached;
  HP_REQUIRE_OK(half(value));
  ++reached;
  return Ok{};
}

TEST(Result, holds_a_value_or_an_error) {
  EXPECT_TRUE(half(4).ok());
  EXPECT_EQ(half(4).value(), 2);
  EXPECT_EQ(*half(4), 2);
  EXPECT_FALSE(half(3).ok());
  EXPECT_EQ(half(3).error(), "odd");
}

TEST(Result, try_binds_the_value_or_returns_the_error) {
  EXPECT_EQ(quarter(12).value(), 3.0);
  EXPECT_EQ(quarter(7).error(), "odd");
  EXPECT_EQ(quarter(6).error(), "odd");
}

TEST(Result, require_ok_goes_on_or_returns_the_error) {
  int reached = 0;
  EXPECT_TRUE(require_even(2, reached).ok());
  EXPECT_EQ(reached, 2);
  reached = 0;
  EXPECT_EQ(require_even(1, reached).error(), "odd");
  EXPECT_EQ(reached, 1);
}

TEST(Result, moves_what_cannot_be_copied) {
  Result<std::unique_ptr<int>, std::string> result(std::make_unique<int>(5));
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 5);
}

TEST(Result, the_wrong_question_is_our_error) {
  EXPECT_THROW((void)half(3).value(), InternalError);
  EXPECT_THROW((void)half(4).error(), InternalError);
}

TEST(Check, says_where_and_what_does_not_hold) {
  EXPECT_THAT([] { HP_CHECK(1 + 1 == 3, "detail " + std::to_string(7)); },
              testing::ThrowsMessage<InternalError>(
                  testing::AllOf(testing::HasSubstr("result_test.cpp:"),
                                 testing::HasSubstr("`1 + 1 == 3` does not hold: detail 7"))));
  EXPECT_NO_THROW(HP_CHECK(1 + 1 == 2, "never evaluated"));
}

}  // namespace
}  // namespace harpe
