#include "sim/launches.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "machine/machine.h"
#include "sim/fused_stores.h"
#include "sim/simulate.h"
#include "tests/unit/sim/plans.h"

namespace harpe::test {
namespace {

// Launches of products, by queue.
std::map<QueueId, std::set<std::int32_t>> launches_of(const Plan& plan) {
  const std::vector<std::int32_t> numbers = find_launches(plan);
  std::map<QueueId, std::set<std::int32_t>> found;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].kind == TaskKind::Compute) found[plan.tasks[i].queue].insert(numbers[i]);
  }
  return found;
}

double simulated_us(const std::string& op, const std::vector<std::string>& parameters,
                    const std::string& schedule) {
  const Machine machine =
      parse_machine(find_machine_preset("h200x8")->text, "h200x8.machine").value();
  return simulate(plan_of(op, parameters, "tp=2", schedule), machine)->total.microseconds();
}

TEST(Launches, of_panels_with_the_same_b_are_one) {
  for (const char* const op : {"gemm_rs", "gemm_ar", "ag_gemm"}) {
    const Plan plan = plan_of(op, {"m=16", "n=1024", "k=1024"}, "tp=2", "push");
    for (const auto& [queue, launches] : launches_of(plan)) EXPECT_EQ(launches.size(), 1U) << op;
  }
}

// A result of one row is cut along its columns, where every product has columns of B of its own.
TEST(Launches, of_other_columns_of_b_are_apart) {
  const Plan plan = plan_of("gemm_ar", {"m=1", "n=1024", "k=1024"}, "tp=2", "push");
  for (const auto& [queue, launches] : launches_of(plan)) EXPECT_EQ(launches.size(), 2U);
  const auto fused_stores = find_fused_stores(plan);
  const std::vector<std::int32_t> numbers = find_launches(plan);
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    for (const TaskId product : fused_stores[i]) {
      EXPECT_EQ(numbers[product.index()], -1 - product.value) << "of a launch of its own";
    }
  }
}

TEST(Launches, of_pieces_of_depth_are_one) {
  const Plan plan = plan_of("attention", {"seq=1024", "heads=4"}, "cp=4", "push");
  for (const auto& [queue, launches] : launches_of(plan)) EXPECT_EQ(launches.size(), 1U);
}

TEST(Launches, tile_panels_apart) {
  const Plan plan = plan_of("gemm_rs", {"m=16", "n=1024", "k=1024"}, "tp=2", "push");
  std::vector<LaunchPart> parts;
  for (const Task& task : plan.tasks) {
    if (task.kind != TaskKind::Compute || task.queue != plan.tasks[2].queue) continue;
    LaunchPart& part = parts.emplace_back();
    part.operands = task.reads.size();
    for (const Ref& ref : task.reads) part.refs.push_back(&ref);
    for (const Ref& ref : task.writes) part.refs.push_back(&ref);
  }
  ASSERT_EQ(parts.size(), 2U);
  const auto apart = [&](double rows) {
    for (LaunchPart& part : parts) part.shape.rows = rows;
    return tiles_apart(parts, 128);
  };
  EXPECT_EQ(apart(8), 2) << "two tiles, where the sixteen rows together have one";
  EXPECT_EQ(apart(64), 2);
  EXPECT_EQ(apart(128), 1);
  EXPECT_EQ(apart(192), 4.0 / 3);
  EXPECT_EQ(apart(256), 1);
  parts[1].refs = parts[0].refs;  // a further piece of the same panel
  EXPECT_EQ(apart(8), 1);
}

// Measured on two H200, in microseconds (bench/h200x2).
TEST(Launches, are_priced_as_two_H200_take) {
  struct Case {
    const char* op;
    std::vector<std::string> parameters;
    const char* schedule;
    double measured_us;
  };
  const std::vector<Case> cases = {
      {"gemm_rs", {"m=256", "n=8192", "k=8192"}, "bulk", 76.6},
      {"gemm_rs", {"m=256", "n=8192", "k=8192"}, "push", 54.4},
      {"gemm_rs", {"m=256", "n=8192", "k=28672"}, "bulk", 129.7},
      {"gemm_rs", {"m=256", "n=8192", "k=28672"}, "push", 113.2},
      {"ag_gemm", {"m=256", "n=10240", "k=8192"}, "bulk", 75.5},
      {"ag_gemm", {"m=256", "n=10240", "k=8192"}, "push", 74.8},
      {"ag_gemm", {"m=256", "n=57344", "k=8192"}, "bulk", 213.1},
      {"ag_gemm", {"m=256", "n=57344", "k=8192"}, "push", 256.1},
  };
  for (const auto& [op, parameters, schedule, measured_us] : cases) {
    const double us = simulated_us(op, parameters, schedule);
    EXPECT_NEAR(us / measured_us, 1, 0.25) << op << " " << parameters[0] << " " << schedule;
  }
}

// Weights of 67 MB a rank: 15 us at 4.4 TB/s, and two readings 30.
TEST(Launches, of_few_rows_read_weights_once) {
  const auto shape = [](const std::string& rows) {
    return std::vector<std::string>{"m=" + rows, "n=8192", "k=8192"};
  };
  EXPECT_LT(simulated_us("gemm_rs", shape("16"), "push"), 30);
  EXPECT_LT(simulated_us("gemm_rs", shape("64"), "push"), 30);
  EXPECT_LT(simulated_us("gemm_rs", shape("16"), "push"),
            simulated_us("gemm_rs", shape("16"), "bulk"));
}

// Rows of another rank that a product reads in place come tile by tile, whole tiles of them.
TEST(Launches, fetch_whole_tiles_of_what_lies_on_other_ranks) {
  EXPECT_GT(simulated_us("ag_gemm", {"m=8", "n=28672", "k=4096"}, "pull"), 300);  // 925 measured
}

}  // namespace
}  // namespace harpe::test
