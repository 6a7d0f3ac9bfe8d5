#include <gtest/gtest.h>

#include "measure/verify_all.h"

namespace harpe {
namespace {

Tuned tune_small() {
  Session session(false);
  TuneRequest request{
      .subject = {.target = "gemm", .parameters = {"m=8", "n=8", "k=8"}, .mesh = "x=2"},
      .search = {}};
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

// The candidates of both layouts together are all candidates, and all are proved and right.
TEST(VerifyAll, looks_at_those_that_keep_to_the_layout) {
  const auto count = [](const std::string& layout) {
    Session session(false);
    TuneRequest request{
        .subject = {.target = "attention",
                    .parameters = {"seq=16", "heads=2", "head_dim=4", "causal=true", "dtype=f32"},
                    .mesh = "cp=2",
                    .layout = layout},
        .search = {}};
    const Checked<Tuned> tuned = tune(session, request);
    HP_CHECK(tuned.ok(), render(tuned.error()));
    const Checked<VerifiedAll> all = verify_all(*tuned, {}, 0, {});
    HP_CHECK(all.ok(), render(all.error()));
    EXPECT_EQ(all->wrong, 0) << layout;
    return all->verified;
  };
  EXPECT_GT(count("contiguous"), 0);
  EXPECT_GT(count("zigzag"), 0);
  EXPECT_EQ(count("contiguous") + count("zigzag"), count("any"));
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
