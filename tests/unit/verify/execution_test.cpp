#include "verify/execution.h"

#include <gtest/gtest.h>

#include "tests/unit/verify/plans.h"

namespace harpe::test {
namespace {

TEST(VerifyTerms, sees_a_read_of_nothing) {
  RingGemm p;
  p.hand.at(TaskId(2)).reads[0].boxes.clear();
  p.hand.at(TaskId(2)).writes[0].boxes.clear();
  EXPECT_EQ(finding(p.hand.plan),
            "error[V501]: task 6 (compute mm.0 on rank 0) reads `A` [c0=1] in `mm.A.st0.0` of rank "
            "0, where no task has stored it");
}

TEST(VerifyTerms, sees_a_content_that_is_gone) {
  // In a fully ordered plan, a second copy overwrites the operand of the compute.
  RingGemm p;
  HandPlan& hand = p.hand;
  hand.plan.tasks.insert(hand.plan.tasks.begin() + 4, Task{});
  Task& task = hand.plan.tasks[4];
  task = hand.plan.tasks[2];
  task.reads = {hand.read(p.a[0], "0")};
  task.writes = {hand.ref(p.stage[0], WriteMode::Set, "0")};
  for (Sync& sync : hand.plan.syncs) {
    if (sync.from.value >= 4) sync.from.value += 1;
    if (sync.to.value >= 4) sync.to.value += 1;
  }
  hand.signal(TaskId(2), TaskId(7)).from = TaskId(4);
  EXPECT_EQ(finding(hand.plan),
            "error[V501]: task 7 (compute mm.0 on rank 0) reads `A` [c0=1] in `mm.A.st0.0` of rank "
            "0, which holds `A` [c0=0] by then");
}

TEST(VerifyTerms, sees_an_operand_that_is_not_read) {
  RingGemm p;
  p.hand.at(TaskId(6)).reads.erase(p.hand.at(TaskId(6)).reads.begin());
  EXPECT_EQ(finding(p.hand.plan),
            "error[V502]: task 6 (compute mm.0 on rank 0) computes iteration [n0=0, c0=1] and does "
            "not read `A` [c0=1]");
}

TEST(VerifyTerms, sees_a_partial_state_taken_for_a_value) {
  RingGemm p;
  p.hand.at(TaskId(8)).kind = TaskKind::Copy;
  p.hand.at(TaskId(8)).via = Via::Sm;
  p.hand.at(TaskId(8)).nest.clear();
  EXPECT_EQ(finding(p.hand.plan),
            "error[V511]: task 8 (copy on rank 0) puts a partial state of `C` [n0=0] into `C.home` "
            "of rank 0; finalise it");
}

TEST(VerifyTerms, sees_a_value_folded_as_a_state) {
  RingGemm p;
  p.hand.task(0, QueueKind::Sm, TaskKind::Fold, {p.hand.read(p.c[0], "0")},
              {p.hand.ref(p.acc[0], WriteMode::Add, "0")});
  p.hand.signal(TaskId(8), TaskId(10)).from = TaskId(12);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V504]: task 12 (fold mm.0 on rank 0) combines `C` [n0=0] in `C.home` of rank 0, "
            "which is a value and no partial state");
}

TEST(VerifyTerms, sees_an_addition_to_nothing) {
  RingGemm p;
  p.hand.at(TaskId(4)).writes[0].mode = WriteMode::Add;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V505]: task 4 (compute mm.0 on rank 0) adds to `C` [n0=0] in `mm.C.acc0` of "
            "rank 0, where no partial state was begun");
}

TEST(VerifyTerms, sees_contributions_overwritten) {
  RingGemm p;
  p.hand.at(TaskId(6)).writes[0].mode = WriteMode::Init;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V520]: output `C` [n0=0] at rank 0 lacks 1 of 2 contributions: iteration [n0=0, "
            "c0=0]");
}

TEST(VerifyTerms, sees_an_iteration_run_twice) {
  RingGemm p;
  Task& task = p.hand.at(TaskId(4));
  task.iter.push_back(task.iter[0]);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V521]: output `C` [n0=0] at rank 0 has 1 contribution too many: iteration "
            "[n0=0, c0=0]");
}

TEST(VerifyTerms, sees_a_block_computed_for_nobody) {
  Reduce p;
  p.hand.at(TaskId(2)).writes[0] = p.hand.ref(p.acc[0], WriteMode::Init, "0");
  EXPECT_EQ(finding(p.hand.plan),
            "error[V510]: task 2 (compute mm.0 on rank 0) contributes to `C` [n0=1] and writes it "
            "nowhere");
}

TEST(VerifyTerms, sees_a_block_written_with_nothing) {
  Reduce p;
  p.hand.at(TaskId(2)).iter = {p.hand.box({"M", "N", "K"}, "0 0")};
  EXPECT_EQ(finding(p.hand.plan),
            "error[V509]: task 2 (compute mm.0 on rank 0) writes `C` [n0=1] in `mm.C.acc0` of rank "
            "0 and contributes nothing to it");
}

TEST(VerifyTerms, sees_a_hidden_iteration) {
  Masked p;
  Task& task = p.hand.at(TaskId(1));
  task.iter[0] = p.hand.box({"B", "H", "G", "Sq", "Skv"}, "*");
  task.reads[0] = p.hand.read(p.q, "*");
  for (Ref& ref : task.writes) ref.boxes = {p.hand.box({"B", "Sq", "H", "G"}, "*")};
  task.writes[0].boxes[0].push_back({.lo = 0, .hi = 1});
  task.writes[1] = p.hand.ref(p.acc_l, WriteMode::Init, "*");
  EXPECT_EQ(finding(p.hand.plan),
            "error[V506]: task 1 (compute fwd.0 on rank 0) computes iteration [q0=0], all of which "
            "the mask hides");
}

TEST(VerifyTerms, sees_a_result_combined_without_its_weight) {
  // Rank 0 folds its own o with the l from rank 1.
  SplitDecode p;
  std::swap(p.hand.at(TaskId(6)).reads[1], p.hand.at(TaskId(6)).reads[3]);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V507]: task 6 (finalise fwd.0 on rank 0) combines `O` [h0=0] in `fwd.O.acc0` of "
            "rank 0 with `L` [h0=0] of another state (1 contribution against 1 contribution)");
}

TEST(VerifyTerms, sees_an_identity_over_contributions) {
  Masked p;
  p.hand.at(TaskId(3)).writes[0] = p.hand.ref(p.o, WriteMode::Set, "*");
  EXPECT_EQ(finding(p.hand.plan),
            "error[V508]: task 3 (init fwd.0 on rank 0) gives `O` [q0=1] the identity, and the "
            "program makes 1 contribution to it");
}

TEST(VerifyTerms, accepts_a_value_between_two_nests) {
  EXPECT_EQ(finding(Chain().hand.plan), "verified");
  EXPECT_EQ(finding(Twice().hand.plan), "verified");
}

TEST(VerifyTerms, sees_a_partial_state_read_as_an_operand) {
  Chain p;
  p.hand.at(TaskId(3)).reads[0].alloc = p.acc;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V503]: task 3 (compute mv.0 on rank 0) reads `t` [m0=0] in `mm.t.acc0` of rank "
            "0 as a value, and it is a partial state");
}

TEST(VerifyTerms, sees_two_contents_of_one_operand) {
  Twice p;
  p.hand.at(TaskId(4)).reads.push_back(p.hand.read(p.old, ""));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V512]: task 4 (compute third.0 on rank 0) reads two different contents of `t`, "
            "one of them in `t.old` of rank 0");
}

TEST(VerifyTerms, sees_a_stored_block_with_two_sources) {
  Twice p;
  Task& task = p.hand.at(TaskId(2));
  task.kind = TaskKind::Finalise;
  task.nest = "first";
  task.reads = {p.hand.read(p.t, ""), p.hand.read(p.t, "")};
  task.writes = {p.hand.ref(p.t, WriteMode::Set, "")};
  EXPECT_EQ(finding(p.hand.plan),
            "error[V513]: task 2 (finalise first.0 on rank 0) has several sources of `t` for "
            "`t.home` of rank 0, and its statement combines none");
}

TEST(VerifyTerms, sees_one_block_written_in_two_places) {
  Twice p;
  p.hand.at(TaskId(3)).writes.push_back(p.hand.ref(p.old, WriteMode::Set, ""));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V213]: task 3 (compute second.0 on rank 0) writes `t` twice, in `t.old` of rank "
            "0 and elsewhere");
}

TEST(VerifyOutputs, sees_an_operand_that_is_too_old) {
  Twice p;
  p.hand.at(TaskId(4)).reads[0].alloc = p.old;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V522]: output `z` at rank 0 comes from other operands: the one iteration of "
            "third read `t` as first.0 makes it of 1 contribution, not `t` as second.0 makes it of "
            "1 contribution");
}

TEST(VerifyOutputs, sees_a_result_of_the_wrong_statement) {
  // The output is written twice, and the second result is lost.
  Twice p;
  for (Nest& nest : p.hand.plan.program.nests) {
    if (nest.name != "third") nest.stmts[0].targets[0].buffer = "z";
    if (nest.name == "third") nest.stmts[0].targets[0].buffer = "t";
    if (nest.name == "third") nest.stmts[0].operands[0].buffer = "z";
  }
  p.hand.at(TaskId(1)).writes[0].alloc = p.z;
  p.hand.at(TaskId(2)).reads[0].boxes.clear();
  p.hand.at(TaskId(2)).writes[0].boxes.clear();
  p.hand.at(TaskId(3)).writes[0].alloc = p.z;
  p.hand.at(TaskId(4)).reads[0].alloc = p.z;
  p.hand.at(TaskId(4)).writes[0].alloc = p.t;
  EXPECT_EQ(finding(p.hand.plan), "verified");
  p.hand.at(TaskId(3)).nest = "first";
  p.hand.at(TaskId(3)).reads[0].alloc = p.x;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V524]: output `z` at rank 0 holds `z` as first.0 makes it of 1 contribution, "
            "not `z` as second.0 makes it of 1 contribution");
}

TEST(VerifyOutputs, counts_what_is_missing) {
  SplitDecode p;
  p.hand.at(TaskId(7)).reads.resize(2);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V520]: output `O` [h0=1] at rank 1 lacks 1 of 2 contributions: iteration [h0=1, "
            "k0=1]");
}

TEST(VerifyOutputs, counts_what_came_twice) {
  SplitDecode p;
  std::vector<Ref>& reads = p.hand.at(TaskId(7)).reads;
  const std::vector<Ref> own(reads.begin() + 2, reads.end());
  reads.insert(reads.end(), own.begin(), own.end());
  EXPECT_EQ(finding(p.hand.plan),
            "error[V521]: output `O` [h0=1] at rank 1 has 1 contribution too many: iteration "
            "[h0=1, k0=1]");
}

TEST(VerifyOutputs, sees_a_block_never_written) {
  RingGemm p;
  p.hand.at(TaskId(9)).reads[0].boxes.clear();
  p.hand.at(TaskId(9)).writes[0].boxes.clear();
  EXPECT_EQ(finding(p.hand.plan), "error[V523]: output `C` [n0=1] at rank 1 is never written");
}

TEST(VerifyOutputs, asks_for_the_identity_where_nothing_contributes) {
  Masked p;
  for (Ref& ref : p.hand.at(TaskId(3)).writes) ref.boxes.clear();
  EXPECT_EQ(finding(p.hand.plan),
            "error[V523]: output `O` [q0=0] at rank 0 is never written; no iteration contributes "
            "to it, so it needs an init task");
}

TEST(VerifyOutputs, accepts_ranks_that_hold_a_sum_together) {
  Open p;
  EXPECT_EQ(finding(p.hand.plan), "verified");
  // A rank may keep its part as an open partial state.
  for (const std::size_t r : {0U, 1U}) {
    Task& task = p.hand.at(TaskId(static_cast<std::int64_t>(4 + r)));
    task.kind = TaskKind::Fold;
    task.writes[0].mode = WriteMode::Init;
  }
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(VerifyOutputs, sees_a_part_of_a_sum_that_no_rank_holds) {
  Open p;
  Task& task = p.hand.at(TaskId(3));
  task.iter = {p.hand.box({"M", "N", "K"}, "* 0")};
  task.reads[0] = p.hand.read(p.a[0], "0");
  task.reads[1] = p.hand.read(p.b[0], "0 *");
  Move inline_stage;
  inline_stage.how = How::Inline;
  for (const char* buffer : {"A", "B"}) {
    inline_stage.buffer = buffer;
    p.hand.plan.form.nests[0].items.emplace_back(inline_stage);
  }
  p.hand.sync(TaskId(0), TaskId(3));
  p.hand.sync(TaskId(3), TaskId(6));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V520]: output `C` [n0=0] at rank 0 lacks 1 of 2 contributions: iteration [n0=0, "
            "c0=1]");
}

}  // namespace
}  // namespace harpe::test
