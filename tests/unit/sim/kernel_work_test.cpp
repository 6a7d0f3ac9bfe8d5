#include "sim/kernel_work.h"

#include <gtest/gtest.h>

#include "tests/unit/sim/plans.h"

namespace harpe {
namespace kernel_work_test {

// Parts of one launch over allocations of 1,000 bytes each. Operands and targets are blocks of
// them.
class Launch : public testing::Test {
 protected:
  Ref block(std::int64_t alloc, std::int32_t at, WriteMode mode = WriteMode::Read) {
    while (static_cast<std::int64_t>(plan.allocs.size()) <= alloc) {
      plan.allocs.push_back({.rank = RankId(0),
                             .name = "",
                             .buffer = "",
                             .level = Level::Home,
                             .dtype = DType::BF16,
                             .holds = {},
                             .offset = 0,
                             .bytes = 1000});
    }
    return {.alloc = AllocId(alloc), .mode = mode, .boxes = {{{at, at + 1}}}, .when = {}};
  }

  // Two operands and a target, each of so many bytes.
  void add(const Ref& first, const Ref& second, const Ref& target, double bytes = 100) {
    refs.push_back({first, second, target});
    parts.push_back({.shape = {.batch = 1, .rows = 64, .columns = 32, .depth = 16, .flops = 10},
                     .refs = {},
                     .named = {bytes, bytes, bytes},
                     .touched = {bytes, bytes, bytes},
                     .operands = 2});
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].refs = {&refs[i][0], &refs[i][1], &refs[i][2]};
    }
  }

  LaunchWork joined(std::string_view leaf, bool masked = false, double few_rows = 0) {
    return joined_work(plan, plain_machine().processor, leaf, masked, few_rows, parts);
  }

  Plan plan;
  std::vector<std::array<Ref, 3>> refs;
  std::vector<LaunchPart> parts;
};

TEST_F(Launch, of_other_panels_of_rows_has_more_rows) {
  for (int i = 0; i < 4; ++i) add(block(0, i), block(1, 0), block(2, i, WriteMode::Init));
  const LaunchWork work = joined("matmul");
  EXPECT_EQ(work.shape, (LeafShape{.batch = 1,
                                   .rows = 256,
                                   .columns = 32,
                                   .depth = 16,
                                   .flops = 40,
                                   .bytes = 400 + 100 + 400}));
}

TEST_F(Launch, of_other_columns_has_more_columns) {
  for (int i = 0; i < 4; ++i) add(block(0, 0), block(1, i), block(2, i, WriteMode::Init));
  EXPECT_EQ(joined("matmul").shape.columns, 128);
  EXPECT_EQ(joined("matmul").shape.rows, 64);
}

TEST_F(Launch, of_one_target_has_more_depth) {
  add(block(0, 0), block(1, 0), block(2, 0, WriteMode::Init));
  add(block(0, 1), block(1, 1), block(2, 0, WriteMode::Add));
  const LaunchWork work = joined("matmul");
  EXPECT_EQ(work.shape.depth, 32);
  EXPECT_EQ(work.shape.rows, 64);
  EXPECT_EQ(work.shape.bytes, 200 + 200 + 100) << "sums stay in registers";
  EXPECT_EQ(work.carried, 0);
}

TEST_F(Launch, of_problems_apart_has_more_of_them) {
  for (int i = 0; i < 3; ++i) add(block(0, i), block(1, i), block(2, i, WriteMode::Init));
  const LaunchWork work = joined("matmul");
  EXPECT_DOUBLE_EQ(work.shape.batch, 3);
  EXPECT_DOUBLE_EQ(work.shape.rows, 64);
}

TEST_F(Launch, of_attention_has_more_keys_and_one_state) {
  for (int i = 0; i < 4; ++i) {
    add(block(0, 0), block(1, i), block(2, 0, i == 0 ? WriteMode::Init : WriteMode::Add));
  }
  const LaunchWork work = joined("attn_fwd");
  EXPECT_EQ(work.shape.columns, 128);
  EXPECT_EQ(work.shape.rows, 64);
  EXPECT_EQ(work.shape.depth, 16);
}

// One of them finds its rows in two places.
TEST_F(Launch, of_tasks_with_other_operands_has_more_of_the_same) {
  for (int i = 0; i < 2; ++i) add(block(0, i), block(1, 0), block(2, i, WriteMode::Init));
  const Ref more = block(3, 0);
  parts[1].refs.insert(parts[1].refs.begin(), &more);
  parts[1].named.push_back(100);
  parts[1].touched.push_back(100);
  parts[1].operands = 3;
  for (LaunchPart& part : parts) part.shape.bytes = 300;
  const LaunchWork work = joined("matmul");
  EXPECT_EQ(work.shape.batch, 2);
  EXPECT_EQ(work.shape.rows, 64);
  EXPECT_EQ(work.shape.bytes, 600);
}

// Its first task adds: the state is read, and read before all else.
TEST_F(Launch, carries_a_state_on) {
  add(block(0, 0), block(1, 0), block(2, 0, WriteMode::Add));
  const LaunchWork work = joined("attn_fwd");
  EXPECT_EQ(work.carried, 100);
  EXPECT_EQ(work.shape.bytes, 100 + 100 + 200);
}

// The cache holds 1 MiB. Tasks in step read columns of B together; tasks that begin when their rows
// come do not.
TEST_F(Launch, reads_again_what_no_cache_holds_where_tasks_are_not_in_step) {
  constexpr double kLarge = 2e6;
  for (int i = 0; i < 4; ++i) {
    add(block(0, i), block(1, 0), block(2, i, WriteMode::Init), kLarge);
  }
  for (Alloc& alloc : plan.allocs) alloc.bytes = 4 * 2'000'000;
  EXPECT_EQ(joined("matmul").shape.bytes, (4 + 1 + 4) * kLarge);
  for (std::size_t i = 1; i < 4; ++i) parts[i].waits = true;
  EXPECT_EQ(joined("matmul").shape.bytes, (4 + 3 + 4) * kLarge);
  EXPECT_EQ(joined("matmul", false, 4 * 64).shape.bytes, (4 + 1 + 4) * kLarge) << "one tile";
  EXPECT_EQ(joined("matmul", false, 4 * 64 - 1).shape.bytes, (4 + 3 + 4) * kLarge);
}

TEST_F(Launch, shares_its_time_by_operations) {
  for (int i = 0; i < 2; ++i) add(block(0, i), block(1, 0), block(2, i, WriteMode::Init));
  parts[1].shape.flops = 30;
  EXPECT_EQ(shares_of(parts, 5), (std::vector<double>{0.25, 0.75}));
}

// Of four waves of tiles one can begin on what is there; the others come with the last piece.
TEST_F(Launch, holds_its_first_wave_until_the_last_piece_is_there) {
  for (int i = 0; i < 4; ++i) {
    add(block(0, 0), block(1, i), block(2, 0, i == 0 ? WriteMode::Init : WriteMode::Add));
  }
  const std::vector<double> shares = shares_of(parts, 4);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(shares[i], 1.0 / 16);
  EXPECT_DOUBLE_EQ(shares[3], 1.0 / 4 + 3 * 3.0 / 16);
  EXPECT_EQ(shares_of(parts, 1), (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
}

}  // namespace kernel_work_test
}  // namespace harpe
