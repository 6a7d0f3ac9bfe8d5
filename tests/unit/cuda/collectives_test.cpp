#include "exec/cuda/executor/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/cuda/executor/groups.h"
#include "exec/cuda/executor/wiring.h"
#include "tests/unit/exec/plans.h"

namespace harpe::cuda {
namespace collectives_test {

using Kind = library::NcclCall::Kind;

constexpr DeviceAddress kArena = 0x1000'0000;

CollectiveChoice choose(Plan& plan, const CollectiveRules& rules) {
  const Blocks blocks = Blocks::make(plan.program, plan.mesh, plan.form).value();
  return choose_collectives(plan, blocks, rules);
}

Plan with_bytes(Plan plan, std::int64_t bytes) {
  for (Task& task : plan.tasks) {
    if (task.kind == TaskKind::Collective) task.bytes = bytes;
  }
  return plan;
}

std::string reason(Plan plan, const CollectiveRules& rules) {
  const CollectiveChoice choice = choose(plan, rules);
  return choice.by_pulls.empty() ? "" : choice.by_pulls.begin()->second;
}

constexpr CollectiveRules kNccl{.engine = CollectiveEngine::Nccl};

TEST(Collectives, an_all_gather_of_whole_parts_is_one_call) {
  Plan plan = test::exchange(2, 1000, true);
  const CollectiveChoice choice = choose(plan, kNccl);
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
  const CollectiveChoice choice = choose(plan, kNccl);
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
  const CollectiveChoice choice = choose(plan, kNccl);
  const Traffic& traffic = choice.by_nccl.at(0);
  ASSERT_EQ(traffic.kind, Kind::Exchange);
  EXPECT_TRUE(traffic.pieces[0][0]);
  EXPECT_EQ(traffic.pieces[1][0]->to, traffic.pieces[0][0]->to + (1 << 20) + 2000);
}

TEST(Collectives, a_sum_is_brought_together_and_folded_in_the_plans_order) {
  Plan plan = test::scatter_gemm(2, 64, 32, 32, "f32", true);
  const Plan before = plan;
  const CollectiveChoice choice = choose(plan, kNccl);
  ASSERT_TRUE(choice.by_pulls.empty()) << choice.by_pulls.begin()->second;
  const Traffic& traffic = choice.by_nccl.at(3);
  EXPECT_EQ(traffic.kind, Kind::Exchange);
  EXPECT_FALSE(traffic.pieces[0][0]);
  EXPECT_EQ(traffic.pieces[0][1]->bytes, 32 * 32 * 4);
  ASSERT_EQ(plan.allocs.size(), before.allocs.size() + 2) << "an inbox each";
  EXPECT_EQ(traffic.pieces[0][1]->to, plan.allocs.back().offset);
  EXPECT_GE(plan.allocs.back().offset, arena_bytes(before)) << "behind all that the plan has";
  ASSERT_EQ(traffic.sums.size(), 2U);
  const SumSteps& steps = traffic.sums[1];
  EXPECT_TRUE(steps.rounds.empty());
  EXPECT_EQ(steps.fold.kind, TaskKind::Fold);
  const AllocId inbox(static_cast<std::int64_t>(plan.allocs.size()) - 1);
  ASSERT_EQ(steps.fold.reads.size(), 2U);
  EXPECT_EQ(steps.fold.reads[0].alloc, inbox) << "of rank 0, then its own";
  EXPECT_EQ(plan.allocs[steps.fold.reads[1].alloc.index()].level, Level::Acc);
}

TEST(Collectives, what_is_rounded_on_its_way_is_rounded_before_it_goes) {
  Plan plan = test::scatter_gemm(2, 64, 32, 32, "f32", true);
  for (Task& task : plan.tasks) task.wire = DType::BF16;
  const std::size_t allocs = plan.allocs.size();
  const CollectiveChoice choice = choose(plan, kNccl);
  ASSERT_TRUE(choice.by_pulls.empty()) << choice.by_pulls.begin()->second;
  const Traffic& traffic = choice.by_nccl.at(3);
  EXPECT_EQ(traffic.pieces[0][1]->bytes, 32 * 32 * 2);
  ASSERT_EQ(plan.allocs.size(), allocs + 4) << "an inbox and an outbox each";
  ASSERT_EQ(traffic.sums[0].rounds.size(), 1U);
  const Task& round = traffic.sums[0].rounds[0];
  EXPECT_EQ(round.kind, TaskKind::Copy);
  const Alloc& out = plan.allocs[round.writes[0].alloc.index()];
  EXPECT_EQ(out.dtype, DType::BF16);
  EXPECT_EQ(out.rank, RankId(0));
  EXPECT_EQ(out.offset, traffic.pieces[0][1]->from);
  EXPECT_EQ(plan.allocs[traffic.sums[1].fold.reads[0].alloc.index()].dtype, DType::BF16);
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // of rank 0
  for (std::size_t i = allocs; i < plan.allocs.size(); ++i) {
    const Alloc& box = plan.allocs[i];
    if (box.rank == RankId(0)) taken.emplace_back(box.offset, box.offset + box.bytes);
  }
  std::ranges::sort(taken);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_LE(taken[0].second, taken[1].first);
}

TEST(Collectives, what_nccl_cannot_do_is_pulled_and_why) {
  const Plan gather = test::exchange(2, 1000, true);
  EXPECT_EQ(reason(gather, {.engine = CollectiveEngine::Pull}), "as asked for");
  EXPECT_EQ(reason(gather, {.engine = CollectiveEngine::Nccl, .shares_gpus = true}),
            "ranks share GPUs, and NCCL wants one for each");
  EXPECT_EQ(reason(gather, {.engine = CollectiveEngine::Nccl, .waits_inside = true}),
            "kernels that wait inside may hold the multiprocessors that NCCL needs");
  Plan twice = gather;
  for (Task& task : twice.tasks) {
    if (task.kind != TaskKind::Collective) continue;
    task.reads.push_back(task.reads[0]);
    task.writes.push_back(task.writes[0]);
  }
  const std::size_t allocs = twice.allocs.size();
  EXPECT_EQ(reason(twice, kNccl), "parts in several pieces");
  EXPECT_EQ(twice.allocs.size(), allocs);
}

TEST(Collectives, of_one_rank_in_two_queues_have_no_order_that_all_share) {
  Plan plan = test::exchange(2, 1000, true);
  const std::size_t tasks = plan.tasks.size();
  for (std::size_t i = 0; i < tasks; ++i) {
    if (plan.tasks[i].kind != TaskKind::Collective) continue;
    Task again = plan.tasks[i];
    plan.queues.push_back(plan.queues[again.queue.index()]);
    again.queue = QueueId(static_cast<std::int64_t>(plan.queues.size()) - 1);
    again.group = 1;
    plan.tasks.push_back(again);
  }
  EXPECT_EQ(reason(plan, kNccl), "a rank's collectives are in several lanes");
}

TEST(Collectives, large_ones_are_nccls_where_nothing_is_asked_for) {
  const Plan gather = test::exchange(2, 1000, true);
  EXPECT_EQ(reason(with_bytes(gather, (64 << 20) - 1), {}), "pulls are faster below 64 MiB");
  EXPECT_EQ(reason(with_bytes(gather, 64 << 20), {}), "");
  Plan sums = test::scatter_gemm(2, 64, 32, 32, "f32", true);
  EXPECT_EQ(reason(with_bytes(sums, 64 << 20), {}), "pulls are as fast");
  for (Task& task : sums.tasks) task.wire = DType::BF16;
  EXPECT_EQ(reason(with_bytes(sums, (16 << 20) - 1), {}), "pulls are faster below 16 MiB");
  EXPECT_EQ(reason(with_bytes(sums, 16 << 20), {}), "");
}

TEST(Collectives, are_counted_by_who_does_them) {
  Plan plan = with_bytes(test::exchange(2, 1000, true), 2000);
  CollectiveChoice choice = choose(plan, kNccl);
  EXPECT_EQ(uses_of(plan, choice, "NCCL 2.28.9"),
            (std::vector<CollectiveUse>{{.operation = CollectiveOp::AllGather,
                                         .engine = "NCCL 2.28.9",
                                         .reason = "",
                                         .count = 2,
                                         .bytes = 4000}}));
  choice.refuse_all("it is not here");
  EXPECT_TRUE(choice.by_nccl.empty());
  EXPECT_TRUE(choice.teams.empty());
  EXPECT_EQ(uses_of(plan, choice, ""), (std::vector<CollectiveUse>{{
                                           .operation = CollectiveOp::AllGather,
                                           .engine = "pull",
                                           .reason = "it is not here",
                                           .count = 2,
                                           .bytes = 4000,
                                       }}));
}

TEST(Collectives, of_nccl_wait_for_all_to_come_and_for_nobody_to_leave) {
  const Plan plan = test::exchange(2, 1000, true);
  Wiring wiring = wire(plan, find_groups(plan));
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind != TaskKind::Collective) continue;
    TaskWiring& task = wiring.tasks[i];
    ASSERT_FALSE(task.raises_after_pull.empty());
    end_by_itself(task);
    EXPECT_TRUE(task.raises_after_pull.empty());
    EXPECT_FALSE(task.pulled);
    EXPECT_TRUE(task.arrival);
    EXPECT_EQ(task.arrivals.size(), 2U);
  }
}

}  // namespace collectives_test
}  // namespace harpe::cuda
