#include "support/date.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace harpe {
namespace {

TEST(Date, is_written_with_the_year_first) {
  EXPECT_THAT(today(), testing::MatchesRegex("2[0-9]{3}-[01][0-9]-[0-3][0-9]"));
  EXPECT_LT(date_before(40), today());
  EXPECT_EQ(date_before(1).size(), 10U);
}

}  // namespace
}  // namespace harpe
