#include <gtest/gtest.h>

#include "measure/verify_all.h"

namespace harpe {
namespace {

Tuned tune_small() {
  Session session(false);
  TuneRequest request{
      .subject = {.target = "gemm", .parameters = {"m=8", "n=8", "k=8"}, .mesh = "x=2"},
      .search = {},
      .homes = {}};
  Checked<Tuned> tuned = tune(session, request);
  HP_CHECK(tuned.ok(), render(tuned.error()));
  return *std::move(tuned);
}

TEST(VerifyAll, looks_at_every_candidate_where_nothing_ends_it) {
  const Checked<VerifiedAll> all = verify_all(tune_small(), {}, 0, {});
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->complete);
  EXPECT_EQ(all->verified + static_cast<std::int64_t>(all->refused.size()), all->unique);
  EXPECT_EQ(all->wrong, 0);
}

TEST(VerifyAll, ends_behind_the_candidate_that_an_interrupt_finds_it_at) {
  bool is_interrupted = false;
  SearchOptions options;
  options.progress = [&](std::string_view stage, std::int64_t done, std::int64_t) {
    is_interrupted = stage == "executing" && done == 2;
  };
  const TimeLimit limit{.end = std::nullopt, .interrupted = [&] { return is_interrupted; }};
  const Checked<VerifiedAll> all = verify_all(tune_small(), options, 0, limit);
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(all->complete);
  EXPECT_EQ(all->verified, 3);
  EXPECT_GT(all->unique, 3);
}

TEST(VerifyAll, begins_nothing_once_the_time_is_over) {
  const TimeLimit limit{.end = std::chrono::steady_clock::now()};
  const Checked<VerifiedAll> all = verify_all(tune_small(), {}, 0, limit);
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(all->complete);
  EXPECT_EQ(all->verified, 0);
}

}  // namespace
}  // namespace harpe
