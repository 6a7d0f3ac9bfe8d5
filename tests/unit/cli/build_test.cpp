#include "support/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/environment.h"

namespace harpe::cli {
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

}  // namespace
}  // namespace harpe::cli
