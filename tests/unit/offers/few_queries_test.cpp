#include "offers/few_queries.h"

#include <gtest/gtest.h>

namespace harpe {
namespace {

TEST(FewQueries, nine_parts_are_joined_at_once) {
  EXPECT_EQ(bunch_of(9), 9);
  EXPECT_EQ(joined_in_turn(9), 8);
  EXPECT_FALSE(has_bunches(9));
  EXPECT_EQ(joined_in_turn(1), 0);
}

TEST(FewQueries, more_parts_are_joined_in_two_steps) {
  EXPECT_EQ(bunch_of(16), 4);
  EXPECT_EQ(joined_in_turn(16), 6);
  EXPECT_EQ(bunch_of(128), 12);
  EXPECT_EQ(joined_in_turn(128), 21);
  EXPECT_TRUE(has_bunches(10));
}

}  // namespace
}  // namespace harpe
