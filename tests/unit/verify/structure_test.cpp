#include "verify/structure.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/unit/verify/plans.h"

namespace harpe::test {
namespace {

// Ids, boxes, slots.

TEST(VerifyIds, refuses_a_queue_that_is_not_there) {
  RingGemm p;
  p.hand.plan.tasks[6].queue = QueueId(9);
  EXPECT_EQ(finding(p.hand.plan), "error[V204]: task 6 names lane 9, and there are only 6");
}

TEST(VerifyIds, refuses_a_rank_beyond_the_mesh) {
  RingGemm p;
  p.hand.plan.queues[3].rank = RankId(2);
  EXPECT_EQ(finding(p.hand.plan), "error[V204]: lane 3 names rank 2, and there are only 2");
}

TEST(VerifyIds, refuses_a_signal_from_no_task) {
  RingGemm p;
  p.hand.plan.syncs[1].from = TaskId(-1);
  EXPECT_EQ(finding(p.hand.plan), "error[V204]: sync 1 names task -1, and there are only 12");
}

TEST(VerifyIds, refuses_a_barrier_of_a_task_that_is_not_there) {
  RingGemm p;
  p.hand.plan.barriers.push_back({.from = {TaskId(0)}, .to = {TaskId(12)}, .flag = 7});
  EXPECT_EQ(finding(p.hand.plan), "error[V204]: barrier 0 names task 12, and there are only 12");
}

TEST(VerifyIds, refuses_a_box_with_too_few_ranges) {
  RingGemm p;
  p.hand.at(TaskId(4)).reads[1].boxes[0].pop_back();
  EXPECT_EQ(finding(p.hand.plan),
            "error[V205]: task 4 has a box of buffer `B` with 3 ranges for 4 digits");
}

TEST(VerifyIds, refuses_a_box_beyond_a_digit) {
  RingGemm p;
  p.hand.at(TaskId(4)).iter[0][3].hi = 5;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V206]: task 4 has digit `c0` of nest `mm` at 0..5, outside 0..2");
}

TEST(VerifyIds, refuses_an_empty_range) {
  RingGemm p;
  Box& box = p.hand.at(TaskId(8)).reads[0].boxes[0];
  box[1].hi = box[1].lo;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V206]: task 8 has digit `n0` of buffer `C` at 0..0, outside 0..2");
}

TEST(VerifyIds, refuses_a_slot_of_an_unknown_buffer) {
  RingGemm p;
  p.hand.plan.allocs[6].buffer = "X";
  EXPECT_EQ(finding(p.hand.plan),
            "error[V207]: alloc 6 (`mm.A.st0.0` of rank 0) is for buffer `X`, which is unknown");
}

TEST(VerifyIds, refuses_a_slot_that_speaks_of_too_many_digits) {
  RingGemm p;
  p.hand.plan.allocs[6].holds.push_back(true);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V207]: alloc 6 (`mm.A.st0.0` of rank 0) speaks of 4 digits, and `A` has 3");
}

TEST(VerifyIds, refuses_a_slot_across_its_dtype) {
  RingGemm p;
  p.hand.plan.allocs[8].offset = 3;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V207]: alloc 8 (`mm.C.acc0` of rank 0) cannot lie at offset 3 with 1048576 "
            "bytes of f32");
}

TEST(VerifyIds, refuses_a_home_of_another_dtype) {
  RingGemm p;
  p.hand.plan.allocs[4].dtype = DType::F32;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V207]: alloc 4 (`C.home` of rank 0) is a slot of level home and dtype f32, and "
            "`C` has bf16 there");
}

TEST(VerifyIds, refuses_a_home_that_holds_other_digits) {
  RingGemm p;
  p.hand.plan.allocs[0].holds[1] = true;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V207]: alloc 0 (`A.home` of rank 0) holds all values of `c0`, and a home of `A` "
            "holds one");
}

TEST(VerifyIds, refuses_a_state_in_a_narrow_dtype) {
  RingGemm p;
  p.hand.plan.allocs[8].dtype = DType::BF16;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V207]: alloc 8 (`mm.C.acc0` of rank 0) is a slot of level acc and dtype bf16, "
            "and `C` has f32 there");
}

TEST(VerifyIds, refuses_a_state_in_a_wider_dtype) {
  RingGemm p;
  p.hand.plan.allocs[8].dtype = DType::F64;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V207]: alloc 8 (`mm.C.acc0` of rank 0) is a slot of level acc and dtype f64, "
            "and `C` has f32 there");
}

Move& move_of(Plan& plan) {
  for (NestItem& item : plan.form.nests.front().items) {
    if (auto* const move = std::get_if<Move>(&item)) return *move;
  }
  throw std::logic_error("a form with a move");
}

TEST(VerifyIds, refuses_a_stage_of_another_dtype_than_its_buffer) {
  RingGemm p;
  p.hand.plan.allocs[6].dtype = DType::F16;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V207]: alloc 6 (`mm.A.st0.0` of rank 0) is a slot of level stage and dtype f16, "
            "and `A` has bf16 there");
}

TEST(VerifyIds, refuses_a_stage_of_another_dtype_than_its_wire) {
  RingGemm p;
  move_of(p.hand.plan).wire = DType::F8E4M3;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V207]: alloc 6 (`mm.A.st0.0` of rank 0) is a slot of level stage and dtype "
            "bf16, and `A` has f8e4m3 there");
}

TEST(VerifyIds, refuses_an_inbox_of_another_dtype_than_the_state) {
  SplitDecode p;
  p.hand.plan.allocs[p.in_o[0].index()].dtype = DType::F16;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V207]: alloc 14 (`fwd.O.in0` of rank 0) is a slot of level inbox and dtype f16, "
            "and `O` has f32 there");
}

TEST(VerifyTasks, refuses_a_reduction_that_rounds_to_another_dtype) {
  Reduce p;
  p.hand.at(TaskId(4)).wire = DType::F16;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V234]: task 4 (reduce_scatter mm.0 on rank 0) has `wire f16`, must be bf16");
}

TEST(VerifyTasks, refuses_a_reduction_that_says_no_wire) {
  Reduce p;
  p.hand.at(TaskId(4)).wire.reset();
  EXPECT_EQ(finding(p.hand.plan),
            "error[V234]: task 4 (reduce_scatter mm.0 on rank 0) has no `wire`, must be bf16");
}

TEST(VerifyTasks, refuses_a_wire_where_nothing_is_reduced) {
  RingGemm p;
  p.hand.at(TaskId(2)).wire = DType::F16;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V234]: task 2 (copy on rank 0) has `wire f16`, must be none");
}

TEST(VerifyTasks, refuses_a_kernel_that_the_nest_does_not_choose) {
  RingGemm p;
  p.hand.at(TaskId(4)).leaf_kernel = "cublaslt";
  EXPECT_EQ(finding(p.hand.plan),
            "error[V235]: task 4 (compute mm.0 on rank 0) runs kernel `cublaslt`, and its nest "
            "chooses no named kernel");
}

TEST(VerifyTasks, refuses_a_pack_slot_that_is_rounded_on_the_way_out) {
  RingGemm p;
  const AllocId pack = p.hand.slot(0, "mm.A.st0.0.pack0", "A", Level::Pack, DType::BF16, ".");
  move_of(p.hand.plan).wire = DType::F8E4M3;
  p.hand.plan.allocs[p.stage[0].index()].dtype = DType::F8E4M3;
  p.hand.plan.allocs[p.stage[1].index()].dtype = DType::F8E4M3;
  p.hand.at(TaskId(2)).reads[0].alloc = pack;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V233]: task 2 (copy on rank 0) moves bf16 from `mm.A.st0.0.pack0` into "
            "`mm.A.st0.0`, which has f8e4m3");
}

TEST(VerifyBytes, refuses_a_transfer_that_declares_fewer_bytes_than_it_brings) {
  RingGemm p;
  p.hand.at(TaskId(2)).bytes = 30;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V236]: task 2 (copy on rank 0) declares 30 bytes, and 4096 cross between ranks");
}

TEST(VerifyBytes, refuses_a_task_that_declares_bytes_and_moves_none) {
  RingGemm p;
  p.hand.at(TaskId(4)).bytes = 8;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V236]: task 4 (compute mm.0 on rank 0) declares 8 bytes, and 0 cross between "
            "ranks");
}

TEST(VerifyIds, refuses_a_statement_the_nest_lacks) {
  RingGemm p;
  p.hand.at(TaskId(8)).stmt = 1;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V226]: task 8 is a finalise of statement `mm.1`: the nest has 1 statement");
}

TEST(VerifyIds, refuses_a_nest_the_program_lacks) {
  RingGemm p;
  p.hand.at(TaskId(8)).nest = "nn";
  EXPECT_EQ(finding(p.hand.plan),
            "error[V226]: task 8 is a finalise of statement `nn.0`: the program has no such nest");
}

TEST(VerifyIds, refuses_a_copy_of_a_statement) {
  RingGemm p;
  p.hand.at(TaskId(2)).nest = "mm";
  EXPECT_EQ(finding(p.hand.plan),
            "error[V226]: task 2 is a copy of statement `mm.0`: a task of this kind has none");
}

TEST(VerifyIds, refuses_a_leaf_without_iterations) {
  RingGemm p;
  p.hand.at(TaskId(4)).iter.clear();
  EXPECT_EQ(finding(p.hand.plan),
            "error[V226]: task 4 is a compute of statement `mm.0`: it runs over no iteration");
}

TEST(VerifyIds, refuses_a_read_that_writes) {
  RingGemm p;
  p.hand.at(TaskId(2)).reads[0].mode = WriteMode::Set;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V225]: task 2 has a reference to `A.home` with mode set, must be read");
}

TEST(VerifyIds, refuses_a_part_of_what_no_route_brings) {
  RingGemm p;
  p.hand.at(TaskId(6)).reads[0].when = RouteChoice{.digit = "n0", .value = 0};
  EXPECT_EQ(finding(p.hand.plan),
            "error[V215]: task 6 refers to `mm.A.st0.0` when n0=0: the statement does not read the "
            "buffer through a route");
}

// What a slot can hold.

TEST(VerifySlots, refuses_two_contents_at_once) {
  RingGemm p;
  p.hand.at(TaskId(2)).reads[0].boxes =
      p.hand.at(TaskId(2)).writes[0].boxes = {p.hand.box({"M", "K"}, "*")};
  p.hand.at(TaskId(2)).reads[0].alloc = p.stage[0];
  EXPECT_EQ(finding(p.hand.plan),
            "error[V211]: task 2 (copy on rank 0) needs `A` [c0=0] and `A` [c0=1] at once in "
            "`mm.A.st0.0` of rank 0, which holds one of them at a time");
}

TEST(VerifySlots, refuses_a_block_of_another_ranks_home) {
  RingGemm p;
  p.hand.at(TaskId(4)).reads[0].alloc = p.a[1];
  EXPECT_EQ(finding(p.hand.plan),
            "error[V212]: task 4 (compute mm.0 on rank 0) refers to `A` [c0=0] in the home of rank "
            "1, and another rank is its home");
}

TEST(VerifySlots, refuses_a_block_written_twice_by_one_task) {
  RingGemm p;
  Task& task = p.hand.at(TaskId(8));
  task.writes.push_back(task.writes[0]);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V213]: task 8 (finalise mm.0 on rank 0) writes `C` [n0=0] twice, in `C.home` of "
            "rank 0");
}

TEST(VerifySlots, refuses_a_block_listed_twice_in_one_reference) {
  RingGemm p;
  Ref& ref = p.hand.at(TaskId(2)).reads[0];
  ref.boxes.push_back(ref.boxes[0]);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V213]: task 2 (copy on rank 0) reads `A` [c0=1] twice, in `A.home` of rank 1");
}

// Queues and boundaries.

TEST(VerifyTasks, refuses_a_leaf_on_a_copy_engine) {
  RingGemm p;
  p.hand.at(TaskId(4)).queue = p.hand.queue(0, QueueKind::Ce);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V220]: task 4 (compute mm.0 on rank 0) is on queue 2, of kind ce; a task like "
            "it runs on kind sm");
}

TEST(VerifyTasks, refuses_a_copy_on_the_queue_of_another_transport) {
  RingGemm p;
  p.hand.at(TaskId(2)).via = Via::Nccl;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V220]: task 2 (copy on rank 0) is on queue 2, of kind ce; a task like it runs "
            "on kind nccl");
}

TEST(VerifyTasks, refuses_a_rank_without_an_exit) {
  RingGemm p;
  p.hand.plan.tasks.pop_back();
  p.hand.plan.syncs.erase(p.hand.plan.syncs.begin() + 9, p.hand.plan.syncs.begin() + 11);
  EXPECT_EQ(finding(p.hand.plan), "error[V221]: rank 1 has 0 exit tasks instead of 1");
}

TEST(VerifyTasks, refuses_a_rank_with_two_entries) {
  RingGemm p;
  p.hand.at(TaskId(11)).kind = TaskKind::Entry;
  EXPECT_EQ(finding(p.hand.plan), "error[V221]: rank 1 has 2 entry tasks instead of 1");
}

TEST(VerifyTasks, refuses_an_entry_that_is_not_first) {
  RingGemm p;
  std::swap(p.hand.at(TaskId(0)).kind, p.hand.at(TaskId(10)).kind);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V222]: task 10 (entry on rank 0) is not the first of its queue: task 0 (exit "
            "on rank 0) comes before it");
}

TEST(VerifyTasks, refuses_an_exit_that_names_blocks) {
  RingGemm p;
  p.hand.at(TaskId(10)).reads = {p.hand.read(p.c[0], "0")};
  EXPECT_EQ(finding(p.hand.plan),
            "error[V228]: task 10 (exit on rank 0) names blocks, and owns all slots of its rank as "
            "it is");
}

// What a kind of task may touch.

TEST(VerifyTasks, refuses_a_leaf_that_reads_a_peer) {
  RingGemm p;
  p.hand.at(TaskId(6)).reads[0].alloc = p.a[1];
  EXPECT_EQ(finding(p.hand.plan),
            "error[V223]: task 6 (compute mm.0 on rank 0) reaches into `A.home` of rank 1; "
            "transfer the blocks first, or declare the operand's move `inline`");
}

TEST(VerifyTasks, accepts_a_leaf_that_reads_a_peer_where_the_move_is_inline) {
  RingGemm p;
  p.hand.at(TaskId(6)).reads[0].alloc = p.a[1];
  std::get<Move>(p.hand.plan.form.nests[0].items[2]).how = How::Inline;
  p.hand.sync(TaskId(1), TaskId(6));
  p.hand.sync(TaskId(6), TaskId(11));
  EXPECT_EQ(finding(p.hand.plan), "verified");
}

TEST(VerifyTasks, refuses_a_fold_of_a_peers_state) {
  SplitDecode p;
  p.hand.at(TaskId(6)).reads[2].alloc = p.acc_o[1];
  EXPECT_EQ(finding(p.hand.plan),
            "error[V223]: task 6 (finalise fwd.0 on rank 0) reaches into `fwd.O.acc0` of rank 1; "
            "transfer the blocks first, or declare the operand's move `inline`");
}

TEST(VerifyTasks, refuses_a_copy_between_two_other_ranks) {
  RingGemm p;
  p.hand.at(TaskId(2)).writes[0].alloc = p.stage[1];
  EXPECT_EQ(finding(p.hand.plan),
            "error[V223]: task 2 (copy on rank 0) reaches into `mm.A.st0.0` of rank 1; transfer "
            "the blocks first, or declare the operand's move `inline`");
}

TEST(VerifyTasks, refuses_a_copy_that_writes_other_blocks_than_it_reads) {
  RingGemm p;
  p.hand.at(TaskId(2)).writes[0].boxes[0][1] = {.lo = 0, .hi = 1};
  EXPECT_EQ(finding(p.hand.plan),
            "error[V224]: task 2 (copy on rank 0) moves other blocks than it reads: read 0 from "
            "`A.home`, write into `mm.A.st0.0`");
}

TEST(VerifyTasks, refuses_a_copy_without_a_destination) {
  RingGemm p;
  p.hand.at(TaskId(2)).writes.clear();
  EXPECT_EQ(finding(p.hand.plan),
            "error[V228]: task 2 (copy on rank 0) has 1 read and 0 writes, and moves each read to "
            "the write beside it");
}

TEST(VerifyTasks, refuses_an_accumulation_that_sets) {
  RingGemm p;
  p.hand.at(TaskId(4)).writes[0].mode = WriteMode::Set;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V225]: task 4 (compute mm.0 on rank 0) has a reference to `mm.C.acc0` with mode "
            "set, must be init or add");
}

TEST(VerifyTasks, refuses_a_copy_that_adds) {
  RingGemm p;
  p.hand.at(TaskId(2)).writes[0].mode = WriteMode::Add;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V225]: task 2 (copy on rank 0) has a reference to `mm.A.st0.0` with mode add, "
            "must be set");
}

TEST(VerifyTasks, refuses_a_leaf_that_reads_what_its_statement_does_not) {
  RingGemm p;
  p.hand.at(TaskId(6)).reads.push_back(p.hand.read(p.c[0], "0"));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V227]: task 6 (compute mm.0 on rank 0) reads `C`, which is no operand of mm.0");
}

TEST(VerifyTasks, refuses_a_leaf_that_writes_what_its_statement_does_not) {
  RingGemm p;
  p.hand.at(TaskId(6)).writes.push_back(p.hand.ref(p.stage[0], WriteMode::Init, "1"));
  EXPECT_EQ(finding(p.hand.plan),
            "error[V227]: task 6 (compute mm.0 on rank 0) writes `A`, which is no target of mm.0");
}

TEST(VerifyTasks, refuses_half_of_a_tied_state) {
  SplitDecode p;
  p.hand.at(TaskId(6)).reads.pop_back();
  EXPECT_EQ(
      finding(p.hand.plan),
      "error[V228]: task 6 (finalise fwd.0 on rank 0) reads 3 refs of a state with 2 targets");
}

TEST(VerifyTasks, refuses_a_tied_state_out_of_order) {
  SplitDecode p;
  std::vector<Ref>& reads = p.hand.at(TaskId(6)).reads;
  std::swap(reads[2], reads[3]);
  EXPECT_EQ(finding(p.hand.plan),
            "error[V228]: task 6 (finalise fwd.0 on rank 0) reads `L` where `O` belongs");
}

TEST(VerifyTasks, refuses_a_fold_without_sources) {
  RingGemm p;
  p.hand.at(TaskId(8)).reads.clear();
  EXPECT_EQ(finding(p.hand.plan), "error[V228]: task 8 (finalise mm.0 on rank 0) has no source");
}

TEST(VerifyTasks, refuses_an_init_that_reads) {
  Masked p;
  p.hand.at(TaskId(3)).reads = p.hand.at(TaskId(2)).reads;
  EXPECT_EQ(finding(p.hand.plan),
            "error[V228]: task 3 (init fwd.0 on rank 0) reads, and writes an identity");
}

TEST(VerifyTasks, refuses_to_accumulate_in_a_home) {
  RingGemm p;
  p.hand.at(TaskId(6)).writes[0].alloc = p.c[0];
  EXPECT_EQ(finding(p.hand.plan),
            "error[V229]: task 6 (compute mm.0 on rank 0) writes `C.home`, whose level is home, "
            "must be a slot for partial states");
}

TEST(VerifyTasks, refuses_to_finalise_elsewhere) {
  RingGemm p;
  p.hand.at(TaskId(8)).writes[0].alloc = p.acc[0];
  EXPECT_EQ(finding(p.hand.plan),
            "error[V229]: task 8 (finalise mm.0 on rank 0) writes `mm.C.acc0`, whose level is acc, "
            "must be a home");
}

TEST(VerifyTasks, refuses_to_pack_into_a_stage) {
  RingGemm p;
  p.hand.at(TaskId(2)).kind = TaskKind::Pack;
  p.hand.at(TaskId(2)).queue = p.hand.queue(0, QueueKind::Sm);
  p.hand.at(TaskId(2)).reads[0].alloc = p.stage[0];
  EXPECT_EQ(finding(p.hand.plan),
            "error[V229]: task 2 (pack on rank 0) writes `mm.A.st0.0`, whose level is stage, must "
            "be a pack slot");
}

TEST(VerifyTasks, refuses_to_write_an_input) {
  RingGemm p;
  Task& task = p.hand.at(TaskId(2));
  task.reads[0] = p.hand.read(p.a[0], "0");
  task.writes[0] = p.hand.ref(p.a[0], WriteMode::Set, "0");
  EXPECT_EQ(finding(p.hand.plan),
            "error[V230]: task 2 (copy on rank 0) writes `A`, an input, in `A.home` of rank 0");
}

}  // namespace
}  // namespace harpe::test
