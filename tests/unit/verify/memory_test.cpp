#include <gtest/gtest.h>

#include "tests/unit/verify/plans.h"
#include "verify/structure.h"

namespace harpe::test {
namespace {

TEST(VerifyMemory, refuses_one_name_at_two_offsets) {
  RingGemm p;
  p.hand.plan.allocs[7].offset += 1 << 22;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V208]: `mm.A.st0.0` lies at 3145728..4194304 on rank 0 and at 7340032..8388608 "
            "on rank 1");
}

TEST(VerifyMemory, refuses_one_name_twice_on_a_rank) {
  RingGemm p;
  p.hand.plan.allocs.push_back(p.hand.plan.allocs[6]);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V208]: `mm.A.st0.0` lies at 3145728..4194304 on rank 0 and at 3145728..4194304 "
            "on rank 0");
}

TEST(VerifyMemory, refuses_slots_that_overlap) {
  RingGemm p;
  for (const int id : {8, 9}) p.hand.plan.allocs[static_cast<std::size_t>(id)].offset -= 4096;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V209]: `mm.A.st0.0` at 3145728..4194304 and `mm.C.acc0` at 4190208..5238784 "
            "overlap on rank 0");
}

TEST(VerifyMemory, refuses_a_slot_too_small_for_its_content) {
  RingGemm p;
  for (const int id : {6, 7}) p.hand.plan.allocs[static_cast<std::size_t>(id)].bytes = 4095;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V210]: `mm.A.st0.0` of rank 0 has 4095 bytes, and `A` [c0=1] in task 2 (copy on "
            "rank 0) needs 4096");
}

TEST(VerifyMemory, refuses_a_home_that_no_task_reads_and_that_is_too_small) {
  Gather p;
  for (const TaskId id : {TaskId(2), TaskId(3)}) {
    p.hand.at(id).reads[0].boxes.clear();
    p.hand.at(id).writes[0].boxes.clear();
  }
  for (const AllocId id : p.x) p.hand.plan.allocs[id.index()].bytes = 127;
  p.hand.plan.allocs[p.x[0].index()].name = "unread";
  p.hand.plan.allocs[p.x[1].index()].bytes = 128;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V210]: `unread` of rank 0 has 127 bytes, and `x` [m0=0] in that home needs 128");
}

TEST(VerifyMemory, accepts_a_slot_of_just_its_contents_size) {
  RingGemm p;
  for (const int id : {6, 7}) p.hand.plan.allocs[static_cast<std::size_t>(id)].bytes = 4096;
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(VerifyMemory, refuses_an_output_without_a_home) {
  RingGemm p;
  p.hand.plan.allocs[5].level = Level::Drain;
  p.hand.plan.allocs[5].dtype = DType::F32;
  p.hand.at(TaskId(9)).kind = TaskKind::Fold;
  p.hand.at(TaskId(9)).writes[0].mode = WriteMode::Init;
  EXPECT_EQ(finding(p.hand.plan), "error[V214]: rank 1 has 0 homes of `C`");
}

TEST(VerifyMemory, refuses_an_arena_above_the_limit) {
  RingGemm p;
  EXPECT_TRUE(verify(p.hand.plan, {.memory_limit_bytes = 5 << 20}).ok());
  const Checked<Certificate> result = verify(p.hand.plan, {.memory_limit_bytes = (5 << 20) - 1});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(render(result.error()),
            "error[V601]: rank 0 needs 5242880 bytes, 1 more than the limit of 5242879; `A.home` "
            "alone has 1048576; use fewer slots (`depth`), more ranks or smaller blocks");
}

}  // namespace
}  // namespace harpe::test
