#include "verify/residency.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/verify/plans.h"

namespace harpe::test {
namespace {

// One kernel per rank that waits inside for an SM transfer, started by the waiting rank or, if
// `pushed`, by the other.
RingGemm with_waiting_kernels(std::int64_t sms, bool pushed) {
  RingGemm p;
  Plan& plan = p.hand.plan;
  plan.form.nests[0].leaf.sm = sms;
  for (Queue& queue : plan.queues) {
    if (queue.kind == QueueKind::Ce) queue.kind = QueueKind::Tma;
  }
  for (const int copy : {2, 3}) p.hand.at(TaskId(copy)).via = Via::Tma;
  for (const int compute : {4, 5, 6, 7}) p.hand.at(TaskId(compute)).kernel = compute % 2;
  if (!pushed) return p;
  std::swap(p.hand.at(TaskId(2)).queue, p.hand.at(TaskId(3)).queue);
  for (Sync& sync : plan.syncs) {
    const auto rank = [&](TaskId id) { return plan.queues[p.hand.at(id).queue.index()].rank; };
    const bool local = rank(sync.from) == rank(sync.to);
    sync.kind = local ? SyncKind::Event : SyncKind::Flag;
    sync.flag = local ? -1 : 10 + static_cast<std::int32_t>(&sync - plan.syncs.data());
  }
  return p;
}

TEST(Residency, lets_a_kernel_wait_for_what_fits_beside_it) {
  EXPECT_EQ(finding(with_waiting_kernels(116, false).hand.plan), "verified");
  EXPECT_EQ(finding(with_waiting_kernels(116, true).hand.plan), "verified");
}

TEST(Residency, lets_a_kernel_wait_for_what_needs_no_sms) {
  RingGemm p;
  p.hand.plan.form.nests[0].leaf.sm = 132;
  for (const int compute : {4, 5, 6, 7}) p.hand.at(TaskId(compute)).kernel = compute % 2;
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(Residency, refuses_a_kernel_that_keeps_out_what_it_waits_for) {
  EXPECT_EQ(
      finding(with_waiting_kernels(117, false).hand.plan),
      "error[V530]: on rank 0 kernel 0 (tasks 4 to 6, mm.0) may hold 117 of 132 SMs while it "
      "waits inside, and task 2 (copy on rank 0), which needs 16, must run first: it waits for "
      "task 2 (copy on rank 0); give the kernels fewer SMs (`sm`), or the transfer to a copy "
      "engine");
}

TEST(Residency, sees_circles_through_other_ranks) {
  EXPECT_EQ(
      finding(with_waiting_kernels(120, true).hand.plan),
      "error[V530]: on rank 0 kernel 0 (tasks 4 to 6, mm.0) may hold 120 of 132 SMs while it "
      "waits inside, and task 3 (copy on rank 0), which needs 16, must run first: it waits for "
      "task 2 (copy on rank 1), which waits for kernel 1 (tasks 5 to 7, mm.0), which waits for "
      "task 3 (copy on rank 0); give the kernels fewer SMs (`sm`), or the transfer to a copy "
      "engine");
}

// A transfer that ends before the launch needs no SMs beside the kernel.
TEST(Residency, lets_a_kernel_start_after_what_it_needs) {
  RingGemm p = with_waiting_kernels(132, false);
  p.hand.sync(TaskId(2), TaskId(4));
  p.hand.sync(TaskId(3), TaskId(5));
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(Residency, counts_the_sms_a_move_is_given) {
  RingGemm p = with_waiting_kernels(124, false);
  for (NestItem& item : p.hand.plan.form.nests[0].items) {
    auto* const move = std::get_if<Move>(&item);
    if (move == nullptr) continue;
    move->via = Via::Tma;
    move->sm = 8;
  }
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(Residency, counts_the_sms_of_a_fusion) {
  RingGemm p = with_waiting_kernels(132, false);
  p.hand.plan.form.fuses.push_back(
      {.name = "all", .nests = {"mm"}, .persistent = true, .sm = 100, .warps = {}});
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(Residency, needs_all_of_a_waiting_kernel_on_the_rank_at_once) {
  EXPECT_EQ(
      finding(with_waiting_kernels(133, false).hand.plan),
      "error[V532]: on rank 0 kernel 0 (tasks 4 to 6, mm.0) waits inside and needs 133 SMs, of "
      "132; give it fewer SMs (`sm`)");
}

TEST(Residency, takes_the_number_of_sms_as_an_option) {
  const RingGemm p = with_waiting_kernels(116, false);
  EXPECT_TRUE(verify(p.hand.plan, {.memory_limit_bytes = {}, .sm_count = 132}).ok());
  const auto small = verify(p.hand.plan, {.memory_limit_bytes = {}, .sm_count = 120});
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().code, DiagCode::V530);
}

TEST(Residency, knows_a_launch_as_one_run_of_its_queue) {
  RingGemm p;
  p.hand.at(TaskId(4)).kernel = 0;
  p.hand.at(TaskId(6)).kernel = 1;
  p.hand.at(TaskId(8)).kernel = 0;
  EXPECT_EQ(
      finding(p.hand.plan),
      "error[V531]: task 8 (finalise mm.0 on rank 0) belongs to kernel 0, and task 6 (compute "
      "mm.0 on rank 0) of another kernel lies before it and after the start of kernel 0");
}

}  // namespace
}  // namespace harpe::test
