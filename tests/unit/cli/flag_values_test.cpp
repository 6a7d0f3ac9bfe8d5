#include "cli/flag_values.h"

#include <gtest/gtest.h>

namespace harpe::cli {
namespace {

std::string refusal(const auto& result) {
  return result.ok() ? "accepted" : render(result.error());
}

TEST(NamedFiles, are_refused_when_malformed_or_doubled) {
  const std::vector<std::string> twice = {"q=a.npy", "q=b.npy"};
  EXPECT_EQ(refusal(parse_named_files("--input", twice)), "error[U116]: `--input` names `q` twice");
  const std::vector<std::string> bare = {"q.npy"};
  EXPECT_EQ(refusal(parse_named_files("--input", bare)),
            "error[U109]: `--input` is `q.npy`, but must be NAME=FILE.npy");
}

TEST(Count, is_an_integer_within_its_range) {
  EXPECT_EQ(*parse_count("--iters", "12", 1, 100), 12);
  for (const std::string_view text : {"0", "101", "1x", "", "1.5", "-3", "99999999999999999999"}) {
    EXPECT_EQ(refusal(parse_count("--iters", text, 1, 100)),
              "error[U109]: `--iters` is `" + std::string(text) +
                  "`, but must be an integer from 1 to 100");
  }
}

TEST(ParseDelay, takes_a_rank_and_a_time) {
  const Checked<SimulateOptions::Delay> delay = parse_delay("3=25.5", 8);
  ASSERT_TRUE(delay.ok());
  EXPECT_EQ(delay->rank, RankId(3));
  EXPECT_EQ(delay->time, from_microseconds(25.5));
  for (const char* text : {"", "3", "=5", "8=5", "-1=5", "3=", "3=x", "3=-1", "3=1e10", "3=inf"}) {
    EXPECT_FALSE(parse_delay(text, 8).ok()) << text;
  }
}

}  // namespace
}  // namespace harpe::cli
