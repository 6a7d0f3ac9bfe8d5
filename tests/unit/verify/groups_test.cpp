#include <gtest/gtest.h>

#include "tests/unit/verify/plans.h"
#include "verify/structure.h"

namespace harpe::test {
namespace {

TEST(VerifyGroups, refuses_a_collective_without_a_group) {
  Gather p;
  p.hand.at(TaskId(2)).group = -1;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V231]: collective group -1: task 2 (all_gather on rank 0) belongs to no group");
}

TEST(VerifyGroups, refuses_a_copy_in_a_group) {
  RingGemm p;
  p.hand.at(TaskId(2)).group = 0;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V231]: collective group 0: task 2 (copy on rank 0) is no collective");
}

TEST(VerifyGroups, refuses_members_of_different_operations) {
  Gather p;
  p.hand.at(TaskId(3)).collective = CollectiveOp::AllToAll;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V231]: collective group 0: task 2 (all_gather on rank 0) and task 3 (all_to_all "
            "on rank 1) are different operations");
}

TEST(VerifyGroups, refuses_two_members_on_one_rank) {
  Gather p;
  p.hand.at(TaskId(3)).queue = p.hand.at(TaskId(2)).queue;
  for (Ref& ref : p.hand.at(TaskId(3)).writes) ref.alloc = p.stage[0];
  EXPECT_EQ(finding(p.hand.plan),
            "error[V231]: collective group 0: task 2 (all_gather on rank 0) and task 3 (all_gather "
            "on rank 0) are members on one rank");
}

TEST(VerifyGroups, refuses_a_part_of_a_rank_that_takes_no_part) {
  Gather p;
  p.hand.at(TaskId(3)).group = 1;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V232]: task 2 (all_gather on rank 0) reads `x.home` of rank 1, which has no "
            "member in group 0");
}

TEST(VerifyGroups, refuses_members_that_gather_different_parts) {
  Gather p;
  p.hand.at(TaskId(3)).reads.erase(p.hand.at(TaskId(3)).reads.begin());
  p.hand.at(TaskId(3)).writes.erase(p.hand.at(TaskId(3)).writes.begin());
  EXPECT_EQ(finding(p.hand.plan),
            "error[V231]: collective group 0: task 2 (all_gather on rank 0) and task 3 (all_gather "
            "on rank 1) gather different parts of rank 0");
}

TEST(VerifyGroups, refuses_a_gather_that_writes_other_parts) {
  Gather p;
  std::swap(p.hand.at(TaskId(3)).writes[0], p.hand.at(TaskId(3)).writes[1]);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V231]: collective group 0: task 3 (all_gather on rank 1) does not write what it "
            "reads, part by part");
}

TEST(VerifyGroups, accepts_an_exchange_of_different_parts) {
  Gather p;
  for (const int id : {2, 3}) p.hand.at(TaskId(id)).collective = CollectiveOp::AllToAll;
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(VerifyGroups, refuses_a_reduction_out_of_rank_order) {
  Reduce p;
  std::swap(p.hand.at(TaskId(4)).reads[0], p.hand.at(TaskId(4)).reads[1]);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V231]: collective group 0: task 4 (reduce_scatter mm.0 on rank 0) takes its "
            "sources out of rank order");
}

TEST(VerifyGroups, refuses_a_reduction_with_two_results) {
  Reduce p;
  Ref second = p.hand.at(TaskId(4)).writes[0];
  second.boxes.clear();
  p.hand.at(TaskId(4)).writes.push_back(second);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V231]: collective group 0: task 4 (reduce_scatter mm.0 on rank 0) writes 2 "
            "refs, must be 1");
}

TEST(VerifyGroups, refuses_a_reduction_that_adds) {
  Reduce p;
  p.hand.at(TaskId(4)).writes[0].mode = WriteMode::Add;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V225]: task 4 (reduce_scatter mm.0 on rank 0) has a reference to `mm.C.sum` "
            "with mode add, must be init");
}

TEST(VerifySignals, refuses_an_event_across_ranks) {
  RingGemm p;
  p.hand.signal(TaskId(1), TaskId(2)).kind = SyncKind::Event;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V240]: sync 1 is an event across ranks: from task 1 (entry on rank 1) to task 2 "
            "(copy on rank 0)");
}

TEST(VerifySignals, refuses_a_flag_with_two_waiting_tasks) {
  RingGemm p;
  p.hand.signal(TaskId(2), TaskId(11)).flag = p.hand.signal(TaskId(0), TaskId(3)).flag;
  EXPECT_EQ(
      finding(p.hand.plan),
      "error[V241]: flag 0 of rank 1 serves sync 3 from task 0 (entry on rank 0) to task 3 (copy "
      "on rank 1), and sync 10 from task 2 (copy on rank 0) to task 11 (exit on rank 1)");
}

TEST(VerifySignals, refuses_a_flag_with_two_signallers) {
  RingGemm p;
  p.hand.sync(TaskId(1), TaskId(6));
  p.hand.sync(TaskId(3), TaskId(6));
  p.hand.signal(TaskId(3), TaskId(6)).flag = p.hand.signal(TaskId(1), TaskId(6)).flag;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V241]: flag 2 of rank 0 serves sync 12 from task 1 (entry on rank 1) to task 6 "
            "(compute mm.0 on rank 0), and sync 13 from task 3 (copy on rank 1) to task 6 (compute "
            "mm.0 on rank 0)");
}

TEST(VerifySignals, accepts_a_counter_with_two_signallers) {
  RingGemm p;
  p.hand.sync(TaskId(1), TaskId(6));
  p.hand.sync(TaskId(3), TaskId(6));
  Sync& first = p.hand.signal(TaskId(1), TaskId(6));
  Sync& second = p.hand.signal(TaskId(3), TaskId(6));
  first.kind = second.kind = SyncKind::Counter;
  second.flag = first.flag;
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(VerifySignals, refuses_a_flag_without_a_signal) {
  RingGemm p;
  p.hand.signal(TaskId(1), TaskId(2)).flag = -1;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V242]: sync 1 from task 1 (entry on rank 1) to task 2 (copy on rank 0) has flag "
            "-1, and its waiting rank's flags are numbered from 0");
}

TEST(VerifySignals, refuses_a_barrier_that_shares_a_flag) {
  RingGemm p;
  p.hand.plan.barriers.push_back({.from = {TaskId(0), TaskId(1)},
                                  .to = {TaskId(2), TaskId(3)},
                                  .flag = p.hand.signal(TaskId(1), TaskId(2)).flag});
  EXPECT_EQ(finding(p.hand.plan),
            "error[V241]: flag 0 of rank 0 serves sync 1 from task 1 (entry on rank 1) to task 2 "
            "(copy on rank 0), and barrier 0 for task 2 (copy on rank 0)");
}

TEST(VerifySignals, accepts_a_barrier_in_place_of_flags) {
  RingGemm p;
  p.hand.drop_sync(TaskId(1), TaskId(2));
  p.hand.drop_sync(TaskId(0), TaskId(3));
  p.hand.plan.barriers.push_back(
      {.from = {TaskId(0), TaskId(1)}, .to = {TaskId(2), TaskId(3)}, .flag = 5});
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

}  // namespace
}  // namespace harpe::test
