#include "plan/work.h"

#include <gtest/gtest.h>

#include <numeric>

#include "compile/session.h"
#include "compile/summary.h"

namespace harpe {
namespace {

Plan planned(const std::vector<std::string>& parameters, const std::string& mesh,
             const std::string& schedule, const char* target = "attention") {
  Session session(false);
  Checked<Plan> plan = session.plan(
      {.target = target, .parameters = parameters, .mesh = mesh, .schedule = schedule});
  EXPECT_TRUE(plan.ok()) << render(plan.error());
  return std::move(plan).value();
}

// Pairs visible under a window of `window` keys (0: all earlier ones) and a prefix, counted singly.
double pairs(std::int64_t positions, std::int64_t window, std::int64_t prefix) {
  double seen = 0;
  for (std::int64_t query = 0; query < positions; ++query) {
    for (std::int64_t key = 0; key < positions; ++key) {
      const bool band = key <= query && (window == 0 || key > query - window);
      seen += band || key < prefix ? 1 : 0;
    }
  }
  return seen;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(Work, is_what_the_mask_shows_whatever_the_schedule) {
  const std::vector<std::string> sizes = {"seq=300", "heads=4", "kv_heads=2", "head_dim=8"};
  const double each = 4.0 * 4 * 8;  // two GEMMs over eight numbers, four heads
  for (const char* schedule : {"ring", "zigzag_ring", "ulysses", "q_rotation"}) {
    std::vector<std::string> parameters = sizes;
    parameters.emplace_back("causal=true");
    EXPECT_DOUBLE_EQ(sum(work_of(planned(parameters, "x=4", schedule))), each * pairs(300, 0, 0));
    parameters.emplace_back("window=37");
    parameters.emplace_back("prefix=21");
    EXPECT_DOUBLE_EQ(sum(work_of(planned(parameters, "x=4", schedule))), each * pairs(300, 37, 21));
  }
  EXPECT_DOUBLE_EQ(sum(work_of(planned(sizes, "x=4", "ring"))), each * 300 * 300);
}

// More pairs than 64 bits can count, and a window longer than any axis, with few keys.
TEST(Work, of_long_sequences_and_windows_is_counted_without_wrapping) {
  const double length = 0x1p36;
  const std::vector<std::string> sizes = {"seq=68719476736", "heads=1", "head_dim=8",
                                          "causal=true"};
  for (const char* schedule : {"ring", "zigzag_ring"}) {
    EXPECT_DOUBLE_EQ(sum(work_of(planned(sizes, "x=4", schedule))),
                     4.0 * 8 * length * (length + 1) / 2);
  }
  const std::vector<std::string> few = {"seq=300", "kv_seq=40", "heads=4", "head_dim=8",
                                        "causal=true"};
  std::vector<std::string> windowed = few;
  windowed.emplace_back("window=9223372036854775807");
  EXPECT_DOUBLE_EQ(sum(work_of(planned(windowed, "x=4", "ring"))),
                   sum(work_of(planned(few, "x=4", "ring"))));
}

TEST(Work, of_a_causal_ring_is_balanced_by_zigzag) {
  const std::vector<std::string> parameters = {"seq=4096", "heads=1", "head_dim=8", "causal=true"};
  EXPECT_GT(summarise(planned(parameters, "x=8", "ring")).balance, 1.8);
  EXPECT_LT(summarise(planned(parameters, "x=8", "zigzag_ring")).balance, 1.001);
}

// The count of every leaf does not depend on the senders of rows or on the length of loops.
TEST(Work, of_experts_is_that_of_the_choices_there_are) {
  const std::vector<std::string> sizes = {"tokens=60", "experts=8", "topk=3", "hidden=10",
                                          "inter=14"};
  const double choices = 60 * 3;
  const double wanted =
      60 * 8 + choices + 3 * 2 * choices * 10 * 14 + 4 * choices * 14 + 2 * choices * 10;
  for (const char* schedule : {"push", "bulk", "allgather", "hierarchical_reduce"}) {
    EXPECT_NEAR(sum(work_of(planned(sizes, "x=4", schedule, "moe"))), wanted, 1e-6 * wanted)
        << schedule;
  }
  // Seven experts on three ranks: 2, 2 and 3.
  const std::vector<double> ranks = work_of(
      planned({"tokens=60", "experts=7", "topk=1", "hidden=10", "inter=90"}, "x=3", "push", "moe"));
  EXPECT_NEAR(ranks[2] / ranks[0], 1.5, 0.1);
}

TaskWork first_compute(const Plan& plan) {
  const PlanWork works(plan);
  for (const Task& task : plan.tasks) {
    if (task.kind == TaskKind::Compute) return works.of(task);
  }
  ADD_FAILURE() << "nothing is computed";
  return {};
}

TEST(Work, of_a_product_is_its_rows_columns_and_depth) {
  const Plan plan = planned({"m=512", "n=256", "k=128"}, "tp=4", "ring", "ag_gemm");
  EXPECT_EQ(first_compute(plan), (TaskWork{.batch = 1,
                                           .rows = 128,
                                           .columns = 64,
                                           .depth = 128,
                                           .flops = 2.0 * 128 * 64 * 128,
                                           .masked = false}));
}

TEST(Work, of_attention_is_its_heads_queries_keys_and_head_dimension) {
  const std::vector<std::string> sizes = {"batch=2", "seq=256", "heads=8", "kv_heads=2",
                                          "head_dim=16"};
  const TaskWork work = first_compute(planned(sizes, "cp=4", "ring"));
  EXPECT_EQ(work, (TaskWork{.batch = 16,
                            .rows = 64,
                            .columns = 64,
                            .depth = 16,
                            .flops = 4.0 * 16 * 64 * 64 * 16,
                            .masked = false}));
  std::vector<std::string> causal = sizes;
  causal.emplace_back("causal=true");
  const TaskWork masked = first_compute(planned(causal, "cp=4", "ring"));
  EXPECT_TRUE(masked.masked);
  EXPECT_EQ(masked.flops, 4.0 * 16 * (64 * 65 / 2) * 16);
}

TEST(Work, of_decode_has_a_query_per_sequence_and_head) {
  const TaskWork work = first_compute(planned(
      {"batch=3", "kv=512", "heads=8", "kv_heads=2", "head_dim=16"}, "tp=4", "fetch", "decode"));
  EXPECT_EQ(work.rows, 1);
  EXPECT_EQ(work.depth, 16);
  EXPECT_EQ(work.flops, 4 * work.batch * work.columns * work.depth);
}

// The rows of experts are those of actual choices, not of all slots.
TEST(Work, of_experts_has_the_rows_that_choices_take) {
  const Plan plan =
      planned({"tokens=64", "experts=8", "topk=2", "hidden=16", "inter=32"}, "ep=4", "bulk", "moe");
  const PlanWork works(plan);
  double rows = 0;
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::Compute || task.nest != "expand" || task.stmt != 0) continue;
    const TaskWork work = works.of(task);
    EXPECT_EQ(work.columns, 32);
    EXPECT_EQ(work.depth, 16);
    rows += work.batch * work.rows;
  }
  EXPECT_NEAR(rows, 64 * 2, 1e-9);
}

TEST(Work, bytes_of_refs_are_those_of_their_blocks) {
  const Plan plan = planned({"m=512", "n=256", "k=128"}, "tp=4", "ring", "ag_gemm");
  const PlanWork works(plan);
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::Copy) continue;
    EXPECT_EQ(works.bytes_of(task.reads.front()), static_cast<double>(task.bytes));
  }
}

}  // namespace
}  // namespace harpe
