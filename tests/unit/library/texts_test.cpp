#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/library/questions.h"

namespace harpe {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

TEST(LibraryOperator, has_a_text_that_reads_back) {
  for (const OperatorInfo& info : operators().value()) {
    EXPECT_THAT(info.text, StartsWith("program " + info.name + " {\n"));
    EXPECT_EQ(describe(info.text).value().text, info.text);
    EXPECT_EQ(describe(info.name).value().text, info.text);
  }
}

TEST(LibrarySchedule, lists_the_steps_of_a_named_one) {
  const Script ring = read_schedule(gemm_question("bulk")).value();
  EXPECT_EQ(ring.name, "bulk");
  EXPECT_EQ(ring.mesh, "tp4");
  EXPECT_THAT(ring.steps,
              ElementsAre("tile(M, [4]) -> m0, m1", "tile(K, [4]) -> k0, k1", "shard(a, k0, tp)",
                          "shard(b, k0, tp)", "shard(c, m0, tp)", "parallelize(mm, k0, tp)",
                          "drain(mm, c, over=[tp], how=bulk)", "bind(mm, c, over=[tp], via=nccl)"));
  const Plan made = plan(gemm_question("bulk")).value();
  EXPECT_EQ(ring.text + ring.form, show(made, Stage::Schedule).value());
}

TEST(LibrarySchedule, reads_back_what_it_lists) {
  const Script ring = read_schedule(attention_question()).value();
  const Script again = read_schedule(attention_question(ring.text)).value();
  EXPECT_EQ(again.text, ring.text);
  EXPECT_EQ(again.form, ring.form);
  EXPECT_EQ(read_schedule(attention_question(ring.form)).value().form, ring.form);
}

TEST(LibrarySchedule, may_end_anywhere) {
  const std::string head = "schedule mine for gemm_rs on ranks {\n";
  const Script empty = read_schedule(gemm_question(head + "}\n")).value();
  EXPECT_TRUE(empty.steps.empty());
  EXPECT_EQ(empty.text, head + "}\n");
  EXPECT_EQ(empty.mesh, "ranks");
  const std::string step = "  tile(M, [4]) -> m0, m1\n  shard(a, k0, tp)\n}\n";
  const Error refused = read_schedule(gemm_question(head + step)).error();
  EXPECT_EQ(refused.code, "S013");
  EXPECT_THAT(refused.notes, ElementsAre("in step 2 of schedule `mine`: shard(a, k0, tp)"));
}

TEST(LibrarySchedule, has_one_text_however_it_is_written) {
  const std::string head = "schedule mine for gemm_rs on ranks {\n";
  const Script loose =
      read_schedule(gemm_question(head + "tile(factors=[4], axis=M) -> m0, m1 shard(c, m0, [tp])}"))
          .value();
  EXPECT_EQ(loose.text, head + "  tile(M, [4]) -> m0, m1\n  shard(c, m0, tp)\n}\n");
}

}  // namespace
}  // namespace harpe
