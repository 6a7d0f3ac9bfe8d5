#include "driver/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/options.h"

namespace harpe {
namespace {

TEST(Build, is_told_apart_by_what_the_linker_left) {
  const std::string build = identify_build("0.1.0");
  EXPECT_EQ(build, identify_build("0.1.0"));
  EXPECT_THAT(build, testing::MatchesRegex("0\\.1\\.0(\\+[0-9a-f]{12})?"));
}

TEST(CacheFolderOption, is_what_was_given_or_none) {
  EXPECT_EQ(cache_folder("there", "--dir").value(), "there");
  EXPECT_EQ(cache_of("there", "--cache").value(), "there");
  EXPECT_EQ(cache_of("off", "--cache").value(), std::nullopt);
}

TEST(Date, is_written_with_the_year_first) {
  EXPECT_THAT(date_before(0), testing::MatchesRegex("2[0-9]{3}-[01][0-9]-[0-3][0-9]"));
  EXPECT_LT(date_before(40), date_before(0));
  EXPECT_EQ(date_before(1).size(), 10U);
}

}  // namespace
}  // namespace harpe
