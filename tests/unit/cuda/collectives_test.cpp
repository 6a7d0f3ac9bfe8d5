#include "exec/cuda/target/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/cuda/library/nccl.h"
#include "tests/unit/exec/plans.h"

namespace harpe::cuda {
namespace collectives_test {

using Kind = library::NcclCall::Kind;

constexpr DeviceAddress kArena = 0x1000'0000;

// A plan whose collectives NCCL runs where possible, with the boxes that they use.
struct Exchanged {
  explicit Exchanged(Plan of)
      : plan(std::move(of)), blocks(Blocks::make(plan.program, plan.mesh, plan.form).value()) {
    exchanges =
        launch::choose_exchanges(plan, blocks, {.engine = launch::ExchangeEngine::Library}, false);
    plan.allocs.insert(plan.allocs.end(), exchanges.boxes.begin(), exchanges.boxes.end());
    choice = bind_exchanges(plan, blocks, exchanges);
  }

  Plan plan;
  Blocks blocks;
  launch::Exchanges exchanges;
  CollectiveChoice choice;
};

Plan with_bytes(Plan plan, std::int64_t bytes) {
  for (Task& task : plan.tasks) {
    if (task.kind == TaskKind::Collective) task.bytes = bytes;
  }
  return plan;
}

TEST(Collectives, an_all_gather_of_whole_parts_is_one_call) {
  Plan plan = test::exchange(2, 1000, true);
  const Exchanged it(plan);
  const CollectiveChoice& choice = it.choice;
  ASSERT_TRUE(choice.by_pulls.empty());
  EXPECT_EQ(choice.teams, (std::vector<Team>{{RankId(0), RankId(1)}}));
  const Traffic& traffic = choice.by_nccl.at(0);
  ASSERT_EQ(traffic.kind, Kind::AllGather);
  EXPECT_TRUE(traffic.sums.empty());
  const library::NcclRank rank(nullptr, nullptr);
  const library::NcclCall call = call_of(traffic, &rank, 1, kArena);
  EXPECT_EQ(call.rank, &rank);
  const auto offset = [](DeviceAddress address) {
    return static_cast<std::int64_t>(address - kArena);
  };
  const Task& taker = *std::ranges::find_if(plan.tasks, [&](const Task& task) {
    return task.kind == TaskKind::Collective && plan.queues[task.queue.index()].rank == RankId(1);
  });
  EXPECT_EQ(offset(call.part.address), plan.allocs[taker.reads[1].alloc.index()].offset);
  EXPECT_EQ(call.part.count, 1000) << "500 of f32 as words of two bytes";
  EXPECT_EQ(offset(call.whole), plan.allocs[taker.writes[0].alloc.index()].offset);
}

TEST(Collectives, a_gather_of_others_parts_alone_is_messages) {
  Plan plan = test::exchange(2, 1000, true);
  for (Task& task : plan.tasks) {
    if (task.kind != TaskKind::Collective) continue;
    const auto own = static_cast<std::ptrdiff_t>(plan.queues[task.queue.index()].rank.index());
    task.reads.erase(task.reads.begin() + own);
    task.writes.erase(task.writes.begin() + own);
  }
  const Exchanged it(plan);
  const CollectiveChoice& choice = it.choice;
  const Traffic& traffic = choice.by_nccl.at(0);
  ASSERT_EQ(traffic.kind, Kind::Exchange);
  EXPECT_FALSE(traffic.pieces[0][0]);
  const library::NcclRank rank(nullptr, nullptr);
  const library::NcclCall call = call_of(traffic, &rank, 0, kArena);
  ASSERT_EQ(call.sends.size(), 1U);
  ASSERT_EQ(call.receives.size(), 1U);
  const auto address = [](std::int64_t offset) {
    return kArena + static_cast<DeviceAddress>(offset);
  };
  EXPECT_EQ(call.sends[0].peer, 1);
  EXPECT_EQ(call.sends[0].elements.address, address(traffic.pieces[0][1]->from));
  EXPECT_EQ(call.sends[0].elements.count, 1000);
  EXPECT_EQ(call.receives[0].peer, 1);
  EXPECT_EQ(call.receives[0].elements.address, address(traffic.pieces[1][0]->to));
  EXPECT_NE(traffic.pieces[1][0]->to, traffic.pieces[0][1]->to) << "blocks 1 and 0";
}

TEST(Collectives, a_gather_into_slots_apart_is_messages) {
  Plan plan = test::exchange(2, 1000, true);
  for (Task& task : plan.tasks) {
    if (task.kind != TaskKind::Collective) continue;
    Alloc apart = plan.allocs[task.writes[1].alloc.index()];
    apart.offset += 1 << 20;
    plan.allocs.push_back(apart);
    task.writes[1].alloc = AllocId(static_cast<std::int64_t>(plan.allocs.size()) - 1);
  }
  const Exchanged it(plan);
  const CollectiveChoice& choice = it.choice;
  const Traffic& traffic = choice.by_nccl.at(0);
  ASSERT_EQ(traffic.kind, Kind::Exchange);
  EXPECT_TRUE(traffic.pieces[0][0]);
  EXPECT_EQ(traffic.pieces[1][0]->to, traffic.pieces[0][0]->to + (1 << 20) + 2000);
}

TEST(Collectives, a_sum_is_brought_together_and_folded_in_the_plans_order) {
  const Plan before = test::scatter_gemm(2, 64, 32, 32, "f32", true);
  const Exchanged it(before);
  ASSERT_TRUE(it.choice.by_pulls.empty()) << it.choice.by_pulls.begin()->second;
  const Traffic& traffic = it.choice.by_nccl.at(3);
  EXPECT_EQ(traffic.kind, Kind::Exchange);
  EXPECT_FALSE(traffic.pieces[0][0]);
  EXPECT_EQ(traffic.pieces[0][1]->bytes, 32 * 32 * 4);
  ASSERT_EQ(it.plan.allocs.size(), before.allocs.size() + 2) << "an inbox each";
  EXPECT_EQ(traffic.pieces[0][1]->to, it.plan.allocs.back().offset);
  const launch::SumSteps& steps = traffic.sums.at(RankId(1));
  EXPECT_TRUE(steps.rounds.empty());
  const AllocId inbox(static_cast<std::int64_t>(it.plan.allocs.size()) - 1);
  EXPECT_EQ(steps.fold.reads.at(0).alloc, inbox) << "of rank 0, then its own";
}

TEST(Collectives, what_is_rounded_on_its_way_is_sent_from_an_outbox) {
  Plan before = test::scatter_gemm(2, 64, 32, 32, "f32", true);
  for (Task& task : before.tasks) task.wire = DType::BF16;
  const Exchanged it(before);
  ASSERT_TRUE(it.choice.by_pulls.empty()) << it.choice.by_pulls.begin()->second;
  const Traffic& traffic = it.choice.by_nccl.at(3);
  EXPECT_EQ(traffic.pieces[0][1]->bytes, 32 * 32 * 2);
  const Task& round = traffic.sums.at(RankId(0)).rounds.at(0);
  const Alloc& out = it.plan.allocs.at(round.writes[0].alloc.index());
  EXPECT_EQ(out.offset, traffic.pieces[0][1]->from);
  const Task& fold = traffic.sums.at(RankId(1)).fold;
  EXPECT_EQ(it.plan.allocs.at(fold.reads[0].alloc.index()).offset, traffic.pieces[0][1]->to);
}

TEST(Collectives, are_counted_by_who_does_them) {
  Exchanged it(with_bytes(test::exchange(2, 1000, true), 2000));
  EXPECT_EQ(uses_of(it.plan, it.choice, "NCCL 2.28.9"),
            (std::vector<CollectiveUse>{{.operation = CollectiveOp::AllGather,
                                         .engine = "NCCL 2.28.9",
                                         .reason = "",
                                         .count = 2,
                                         .bytes = 4000}}));
  it.exchanges.refuse_all("it is not here");
  it.choice = bind_exchanges(it.plan, it.blocks, it.exchanges);
  EXPECT_TRUE(it.choice.by_nccl.empty());
  EXPECT_TRUE(it.choice.teams.empty());
  EXPECT_EQ(uses_of(it.plan, it.choice, ""), (std::vector<CollectiveUse>{{
                                                 .operation = CollectiveOp::AllGather,
                                                 .engine = "pull",
                                                 .reason = "it is not here",
                                                 .count = 2,
                                                 .bytes = 4000,
                                             }}));
}

}  // namespace collectives_test
}  // namespace harpe::cuda
