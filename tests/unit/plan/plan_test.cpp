#include "plan/plan.h"

#include "tests/unit/plan/fixture.h"

namespace harpe {
namespace {

TEST(Plan, needs_an_arena_up_to_the_end_of_its_last_allocation) {
  Plan plan = test::ring();
  EXPECT_EQ(arena_bytes(plan), 1024 + 48);
  plan.allocs[1].bytes = 4096;  // from offset 256
  EXPECT_EQ(arena_bytes(plan), 256 + 4096);
  EXPECT_EQ(arena_bytes(Plan{}), 0);
}

TEST(Plan, has_a_word_for_every_enumerator) {
  EXPECT_EQ(print(Level::Pack), "pack");
  EXPECT_EQ(print(QueueKind::Multimem), "multimem");
  EXPECT_EQ(print(TaskKind::Finalise), "finalise");
  EXPECT_EQ(print(CollectiveOp::ReduceScatter), "reduce_scatter");
  EXPECT_EQ(print(WriteMode::Read), "r");
  EXPECT_EQ(print(SyncKind::Counter), "counter");
}

}  // namespace
}  // namespace harpe
