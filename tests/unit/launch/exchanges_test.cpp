#include "launch/exchanges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/slots.h"
#include "tests/unit/exec/plans.h"

namespace harpe::launch {
namespace exchanges_test {

constexpr ExchangeRules kLibrary{.engine = ExchangeEngine::Library};

Exchanges choose(const Plan& plan, const ExchangeRules& rules = kLibrary,
                 bool waits_inside = false) {
  const Blocks blocks = Blocks::make(plan.program, plan.mesh, plan.form).value();
  return choose_exchanges(plan, blocks, rules, waits_inside);
}

// Why pulls do the collective; "" if the library does it.
std::string why_pulled(const Plan& plan, const ExchangeRules& rules = kLibrary,
                       bool waits_inside = false) {
  const Exchanges exchanges = choose(plan, rules, waits_inside);
  EXPECT_NE(exchanges.by_library.empty(), exchanges.by_pulls.empty());
  EXPECT_TRUE(!exchanges.by_library.empty() || exchanges.boxes.empty());
  return exchanges.by_pulls.empty() ? "" : exchanges.by_pulls.begin()->second;
}

Plan gather() { return test::exchange(2, 1000, true); }
Plan sum() { return test::scatter_gemm(2, 64, 32, 32, "f32", true); }

template <class Change>
Plan with_collectives(Plan plan, const Change& change) {
  for (Task& task : plan.tasks) {
    if (task.kind == TaskKind::Collective) change(task);
  }
  return plan;
}

TEST(Exchanges, move_data_without_boxes) {
  const Plan plan = gather();
  const Exchanges exchanges = choose(plan);
  ASSERT_EQ(exchanges.by_library.size(), 1U);
  const Exchange& exchange = exchanges.by_library.at(0);
  EXPECT_EQ(exchange.members, (std::vector{RankId(0), RankId(1)}));
  ASSERT_EQ(exchange.parts.size(), 4U) << "every member takes each one's, its own too";
  for (const ExchangePart& part : exchange.parts) {
    EXPECT_EQ(plan.allocs.at(part.source.alloc.index()).rank, part.from);
    EXPECT_EQ(plan.allocs.at(part.destination.alloc.index()).rank, part.to);
    EXPECT_EQ(part.source.boxes, part.destination.boxes);
  }
  EXPECT_TRUE(exchange.sums.empty());
  EXPECT_TRUE(exchanges.boxes.empty());
}

TEST(Exchanges, bring_sums_to_inboxes_and_fold_in_the_plans_order) {
  const Plan plan = sum();
  const Exchanges exchanges = choose(plan);
  ASSERT_EQ(exchanges.boxes.size(), 2U) << "an inbox each";
  const std::map<RankId, SumSteps>& steps = exchanges.by_library.at(3).sums;
  ASSERT_EQ(steps.size(), 2U);
  for (const auto& [rank, own] : steps) {
    EXPECT_TRUE(own.rounds.empty());
    EXPECT_EQ(own.fold.kind, TaskKind::Fold);
    ASSERT_EQ(own.fold.reads.size(), 2U);
    for (std::size_t from = 0; from < 2; ++from) {
      const std::size_t alloc = own.fold.reads[from].alloc.index();
      if (from == rank.index()) {
        EXPECT_EQ(plan.allocs.at(alloc).level, Level::Acc) << "its own part";
        continue;
      }
      const Alloc& box = exchanges.boxes.at(alloc - plan.allocs.size());
      EXPECT_EQ(box.rank, rank);
      EXPECT_EQ(box.level, Level::Inbox);
      EXPECT_EQ(box.dtype, DType::F32);
      EXPECT_GE(box.offset, arena_bytes(plan)) << "behind all that the plan has";
    }
  }
}

TEST(Exchanges, round_before_they_send_what_is_rounded_on_its_way) {
  const Plan plan = with_collectives(sum(), [](Task& task) { task.wire = DType::BF16; });
  const Exchanges exchanges = choose(plan);
  ASSERT_EQ(exchanges.boxes.size(), 4U) << "an inbox and an outbox each";
  const SumSteps& steps = exchanges.by_library.at(3).sums.at(RankId(0));
  ASSERT_EQ(steps.rounds.size(), 1U);
  EXPECT_EQ(steps.rounds[0].kind, TaskKind::Copy);
  const Alloc& out =
      exchanges.boxes.at(steps.rounds[0].writes[0].alloc.index() - plan.allocs.size());
  EXPECT_EQ(out.rank, RankId(0));
  for (const Alloc& box : exchanges.boxes) EXPECT_EQ(box.dtype, DType::BF16);
  for (const Alloc& one : exchanges.boxes) {
    for (const Alloc& other : exchanges.boxes) {
      const bool apart = one.offset + one.bytes <= other.offset ||
                         other.offset + other.bytes <= one.offset || one.rank != other.rank;
      EXPECT_TRUE(apart || &one == &other);
    }
  }
}

TEST(Exchanges, are_pulled_where_a_library_has_no_gpu_or_no_sm_to_itself) {
  EXPECT_EQ(why_pulled(gather()), "");
  EXPECT_EQ(why_pulled(gather(), {.engine = ExchangeEngine::Pull}), "as asked for");
  EXPECT_EQ(why_pulled(gather(), {.engine = ExchangeEngine::Library, .shares_gpus = true}),
            "ranks share GPUs, and NCCL wants one for each");
  EXPECT_EQ(why_pulled(gather(), kLibrary, true),
            "kernels that wait inside may hold the multiprocessors that NCCL needs");
}

TEST(Exchanges, are_pulled_where_a_part_is_several_runs_or_comes_in_another_type) {
  const std::string why = "parts in several pieces";
  const auto twice = [](Task& task) {
    task.reads.push_back(task.reads[0]);
    task.writes.push_back(task.writes[0]);
  };
  EXPECT_EQ(why_pulled(with_collectives(gather(), twice)), why);
  EXPECT_EQ(why_pulled(with_collectives(sum(),
                                        [](Task& task) {
                                          task.reads.push_back(task.reads[0]);
                                          task.reads.push_back(task.reads[1]);
                                        })),
            why);
  Plan converted = gather();
  for (Alloc& alloc : converted.allocs) {
    if (alloc.level == Level::Stage) alloc.dtype = DType::BF16;
  }
  EXPECT_EQ(why_pulled(converted), why);
}

TEST(Exchanges, are_pulled_where_a_rank_has_them_in_two_queues) {
  Plan plan = gather();
  const std::size_t tasks = plan.tasks.size();
  for (std::size_t i = 0; i < tasks; ++i) {
    if (plan.tasks[i].kind != TaskKind::Collective) continue;
    Task again = plan.tasks[i];
    plan.queues.push_back(plan.queues[again.queue.index()]);
    again.queue = QueueId(static_cast<std::int64_t>(plan.queues.size()) - 1);
    again.group = 1;
    plan.tasks.push_back(again);
  }
  EXPECT_EQ(why_pulled(plan), "a rank's collectives are in several queues");
}

TEST(Exchanges, are_the_librarys_from_the_bytes_on_from_which_it_is_faster) {
  constexpr std::int64_t kMiB = 1 << 20;
  const ExchangeRules rules{.least_gathered = 64 * kMiB, .least_rounded = 16 * kMiB};
  const auto of = [](Plan plan, std::int64_t bytes, std::optional<DType> wire) {
    return with_collectives(std::move(plan), [&](Task& task) {
      task.bytes = bytes;
      task.wire = wire;
    });
  };
  EXPECT_EQ(why_pulled(of(gather(), 64 * kMiB - 1, {}), rules), "pulls are faster below 64 MiB");
  EXPECT_EQ(why_pulled(of(gather(), 64 * kMiB, {}), rules), "");
  EXPECT_EQ(why_pulled(of(sum(), 64 * kMiB, {}), rules), "pulls are as fast");
  EXPECT_EQ(why_pulled(of(sum(), 16 * kMiB - 1, DType::BF16), rules),
            "pulls are faster below 16 MiB");
  EXPECT_EQ(why_pulled(of(sum(), 16 * kMiB, DType::BF16), rules), "");
}

TEST(Exchanges, sum_nothing_but_sums) {
  Plan plan = sum();
  plan.program.nests.front().stmts.front().monoid = Monoid::Lse;
  EXPECT_EQ(why_pulled(plan), "sums of several numbers at once");
}

TEST(Exchanges, are_all_pulled_where_there_is_no_library) {
  Exchanges exchanges = choose(sum());
  exchanges.refuse_all("it is not here");
  EXPECT_TRUE(exchanges.by_library.empty());
  EXPECT_TRUE(exchanges.boxes.empty());
  EXPECT_EQ(exchanges.by_pulls, (std::map<std::int32_t, std::string>{{3, "it is not here"}}));
}

}  // namespace exchanges_test
}  // namespace harpe::launch
