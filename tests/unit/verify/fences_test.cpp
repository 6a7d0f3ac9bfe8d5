#include "verify/fences.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/verify/plans.h"

namespace harpe::test {
namespace {

// Task 5 puts what rank 0's last compute, task 15, reads. Task 8 is the put behind it, to rank 1.
const std::string kUncovered =
    "error[V540]: task 15 (compute mm.0 on rank 0) reads `A` [c0=2] in `mm.A.st0.2` of rank 0, and "
    "nothing orders it after task 5 (copy on rank 2): ";

std::string would_cover(const std::string& policies) {
  return ", and " + policies + " would cover it; state a fence policy that covers the put";
}

TEST(Fences, order_a_signal_behind_a_put) {
  for (const Fence fence : {Fence::PerPut, Fence::PerDestination, Fence::NicOrdered, Fence::Batched,
                            Fence::OneQuiet, Fence::Immediate}) {
    PushGemm p;
    for (Sync& sync : p.hand.plan.syncs) {
      if (sync.fence) sync.fence = fence;
    }
    EXPECT_EQ(finding(p.hand.plan), "verified");
  }
}

TEST(Fences, are_needed_where_a_signal_can_overtake_a_put) {
  PushGemm p;
  p.hand.signal(TaskId(5), TaskId(15)).fence.reset();
  EXPECT_EQ(finding(p.hand.plan),
            kUncovered + "sync 18 from task 5 (copy on rank 2) has no fence" +
                would_cover("`fence put`, `dest`, `nic`, `batch`, `epoch` or `imm`"));
}

std::string finding_behind_the_next_put(Fence fence) {
  PushGemm p;
  p.hand.signal(TaskId(5), TaskId(15)).fence = fence;
  p.hand.signal(TaskId(5), TaskId(15)).from = TaskId(8);
  return finding(p.hand.plan);
}

TEST(Fences, put_covers_one_put) {
  EXPECT_EQ(finding_behind_the_next_put(Fence::PerPut),
            kUncovered +
                "sync 18 from task 8 (copy on rank 2) has `fence put`, which covers that "
                "put alone" +
                would_cover("`fence epoch`"));
}

TEST(Fences, imm_covers_its_own_put) {
  EXPECT_EQ(finding_behind_the_next_put(Fence::Immediate),
            kUncovered +
                "sync 18 from task 8 (copy on rank 2) has `fence imm`, which covers that "
                "put alone" +
                would_cover("`fence epoch`"));
}

TEST(Fences, epoch_covers_puts_to_all_ranks) {
  EXPECT_EQ(finding_behind_the_next_put(Fence::OneQuiet), "verified");
}

// Immediate data and the NIC's order reach only the rank that receives the put.
TEST(Fences, batch_and_imm_cover_only_for_the_rank_that_is_put_to) {
  for (const Fence fence : {Fence::Batched, Fence::Immediate}) {
    PushGemm p;
    p.hand.signal(TaskId(5), TaskId(15)).fence = fence;
    Task& put = p.hand.at(TaskId(5));
    const AllocId away = p.hand.at(TaskId(8)).writes[0].alloc;
    put.writes[0].alloc = away;  // to rank 1, but rank 0 waits for its signal
    EXPECT_NE(finding(p.hand.plan), "verified") << print(fence);
  }
}

TEST(Fences, dest_covers_puts_to_one_rank) {
  EXPECT_EQ(finding_behind_the_next_put(Fence::PerDestination),
            kUncovered +
                "sync 18 from task 8 (copy on rank 2) has `fence dest`, which covers puts "
                "to rank 1, and this one goes to rank 0" +
                would_cover("`fence epoch`"));
}

// Two puts to one rank, with a signal only behind the second.
PushGemm with_a_second_put(Fence fence) {
  PushGemm p;
  Task& second = p.hand.at(TaskId(8));
  second.writes[0].alloc = p.hand.at(TaskId(5)).writes[0].alloc;  // also to rank 0
  p.hand.signal(TaskId(5), TaskId(15)).fence = fence;
  p.hand.signal(TaskId(5), TaskId(15)).from = TaskId(8);
  return p;
}

TEST(Fences, nic_covers_puts_to_the_rank_that_waits) {
  PushGemm p;
  p.hand.signal(TaskId(5), TaskId(15)).fence = Fence::NicOrdered;
  EXPECT_EQ(finding(p.hand.plan), "verified");
  EXPECT_EQ(finding_behind_the_next_put(Fence::NicOrdered),
            kUncovered +
                "sync 18 from task 8 (copy on rank 2) has `fence nic`, which covers puts "
                "to rank 1, and this one goes to rank 0" +
                would_cover("`fence epoch`"));
}

// Two puts of one queue may arrive in any order.
TEST(Fences, do_not_order_puts_among_themselves) {
  EXPECT_EQ(finding(with_a_second_put(Fence::PerDestination).hand.plan).substr(0, 11),
            "error[V403]");
}

// The event behind the second put also waits for the first put. Without it, the exit misses both.
TEST(Fences, are_not_needed_by_an_event) {
  PushGemm p;
  p.hand.drop_sync(TaskId(6), TaskId(21));
  EXPECT_EQ(
      finding(p.hand.plan),
      "error[V406]: task 21 (exit on rank 0) does not wait for task 3 (copy on rank 0), which "
      "touches `A.home` of rank 0");
}

TEST(Fences, belong_to_signals_behind_puts) {
  PushGemm p;
  p.hand.signal(TaskId(6), TaskId(21)).fence = Fence::PerDestination;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V541]: sync 22 from task 6 (copy on rank 0) to task 21 (exit on rank 0) has a "
            "fence, and is an event");
  PushGemm q;
  q.hand.signal(TaskId(1), TaskId(3)).fence = Fence::PerPut;
  EXPECT_EQ(finding(q.hand.plan),
            "error[V541]: sync 1 from task 1 (entry on rank 1) to task 3 (copy on rank 0) has a "
            "fence, and the task is no put");
}

}  // namespace
}  // namespace harpe::test
