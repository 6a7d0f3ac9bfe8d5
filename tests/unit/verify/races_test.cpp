#include "verify/races.h"

#include <gtest/gtest.h>

#include "tests/unit/verify/plans.h"

namespace harpe::test {
namespace {

TEST(VerifyRaces, sees_a_read_before_its_write) {
  RingGemm p;
  p.hand.drop_sync(TaskId(2), TaskId(6));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V401]: task 6 (compute mm.0 on rank 0) reads `A` [c0=1] in `mm.A.st0.0` of rank "
            "0, and nothing orders it after task 2 (copy on rank 0), which writes it");
}

TEST(VerifyRaces, sees_a_write_before_a_read_is_over) {
  // Rank 0 computes into its accumulator again while the copy engine still sends from it.
  SplitDecode p;
  const TaskId late = p.hand.compute(
      0, "* 0", {p.hand.read(p.q[0], "*"), p.hand.read(p.k[0], "0 *"), p.hand.read(p.v[0], "0 *")},
      {p.hand.ref(p.acc_o[0], WriteMode::Init, "*"), p.hand.ref(p.acc_l[0], WriteMode::Init, "*")});
  p.hand.drop_sync(TaskId(6), TaskId(8));
  p.hand.sync(late, TaskId(8));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V402]: task 10 (compute fwd.0 on rank 0) overwrites `O` [h0=1] in `fwd.O.acc0` "
            "of rank 0, and nothing orders it after task 4 (copy on rank 0), which reads it");
}

TEST(VerifyRaces, sees_two_writes_in_no_order) {
  SplitDecode p;
  const TaskId again = p.hand.copy(1, p.hand.read(p.acc_o[0], "1"), p.in_o[1]);
  p.hand.at(again).queue = p.hand.queue(1, QueueKind::Ce);
  p.hand.sync(TaskId(2), again);
  p.hand.sync(again, TaskId(8));
  p.hand.sync(again, TaskId(9));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V403]: task 4 (copy on rank 0) and task 10 (copy on rank 1) both write `O` "
            "[h0=1] in `fwd.O.in0` of rank 1, in no fixed order");
}

TEST(VerifyRaces, sees_a_content_replaced_while_it_is_read) {
  // A second copy puts A's own part into the stage slot, unordered with the reader.
  RingGemm p;
  const TaskId second = p.hand.copy(0, p.hand.read(p.a[0], "0"), p.stage[0]);
  p.hand.sync(second, TaskId(10));
  EXPECT_EQ(
      finding(p.hand.plan),
      "error[V404]: task 6 (compute mm.0 on rank 0) reads `A` [c0=1] in `mm.A.st0.0` of rank 0, "
      "and nothing orders it after task 12 (copy on rank 0), which uses the slot for `A` [c0=0]");
}

TEST(VerifyRaces, accepts_a_content_replaced_after_it_was_read) {
  RingGemm p;
  const TaskId second = p.hand.copy(0, p.hand.read(p.a[0], "0"), p.stage[0]);
  p.hand.sync(TaskId(6), second);
  p.hand.sync(second, TaskId(10));
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(VerifyRaces, sees_a_task_before_an_entry) {
  RingGemm p;
  p.hand.drop_sync(TaskId(1), TaskId(2));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V405]: task 2 (copy on rank 0) touches `A.home` of rank 1, and nothing orders "
            "it after task 1 (entry on rank 1)");
}

TEST(VerifyRaces, sees_an_exit_that_does_not_wait) {
  RingGemm p;
  p.hand.drop_sync(TaskId(2), TaskId(11));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V406]: task 11 (exit on rank 1) does not wait for task 2 (copy on rank 0), "
            "which touches `A.home` of rank 1");
}

TEST(VerifyRaces, sees_an_exit_that_does_not_wait_for_a_member) {
  // Rank 0's member still sends to rank 1 when rank 1's member has ended.
  Gather p;
  p.hand.at(TaskId(4)).reads = {};
  p.hand.at(TaskId(4)).writes[0].boxes = {};
  p.hand.drop_sync(TaskId(2), TaskId(4));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V406]: task 6 (exit on rank 0) does not wait for task 2 (all_gather on rank 0), "
            "which touches `move.x.st0.0` of rank 0");
}

TEST(VerifyRaces, lets_a_member_send_for_the_others) {
  // Only the member of the sending rank must wait for that rank's entry; the reader need not.
  Gather p;
  EXPECT_EQ(finding(p.hand.plan), "verified");
  p.hand.drop_sync(TaskId(0), TaskId(2));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V405]: task 2 (all_gather on rank 0) touches `x.home` of rank 0, and nothing "
            "orders it after task 0 (entry on rank 0)");
}

TEST(VerifyRaces, does_not_take_one_members_end_for_anothers) {
  // Rank 0 reads rank 1's slot after its own member, but rank 1's member may still write it.
  Gather p;
  const TaskId peek = p.hand.copy(0, p.hand.read(p.stage[1], "*"), p.stage[0]);
  p.hand.at(peek).bytes = 64 * 4;  // f32: all of x
  p.hand.sync(TaskId(2), peek);
  p.hand.drop_sync(TaskId(2), TaskId(4));
  p.hand.sync(peek, TaskId(4));
  p.hand.sync(peek, TaskId(7));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V401]: task 8 (copy on rank 0) reads `x` [m0=0] in `move.x.st0.0` of rank 1, "
            "and nothing orders it after task 3 (all_gather on rank 1), which writes it");
  p.hand.sync(TaskId(3), peek);
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

}  // namespace
}  // namespace harpe::test
