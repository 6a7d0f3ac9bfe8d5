#include "sim/kernel_work.h"

#include <gtest/gtest.h>
#include <array>

#include "tests/unit/sim/plans.h"

namespace harpe {
namespace {

using launch::Arrival;
using launch::Kernel;
using launch::Panel;

launch::Place place(int alloc, Interval rows, Interval columns) {
  return {.alloc = AllocId(alloc), .span = {rows, columns}};
}

// Two bytes per element, all in the rank's own memory.
double two_bytes(const launch::Place& place) {
  return 2.0 * static_cast<double>(place.span[0].size() * place.span[1].size());
}

enum : int { kA, kB, kC, kOther };

// C[rows, 64] += A[rows, depth] B[depth, 64] in panels of 32 rows.
Kernel gemm(int panels, int chunks, bool own_b) {
  Kernel kernel{.name = "gemm_sm90", .variant = ""};
  for (int panel = 0; panel < panels; ++panel) {
    const Interval rows{32 * panel, 32 * panel + 32};
    Panel& made = kernel.panels.emplace_back();
    made.stores = {place(kC, rows, {0, 64})};
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const Interval depth{16 * chunk, 16 * chunk + 16};
      made.meets.push_back(static_cast<std::int32_t>(kernel.arrivals.size()));
      kernel.arrivals.push_back(
          {.reads = {place(kA, rows, depth), place(own_b ? kOther + panel : kB, depth, {0, 64})},
           .when = {}});
    }
  }
  return kernel;
}

std::vector<TaskPart> parts(int count, double flops) {
  std::vector<TaskPart> all(static_cast<std::size_t>(count));
  for (TaskPart& part : all) part.work.shape.flops = flops;
  return all;
}

constexpr double kFlops = 2.0 * 32 * 16 * 64;  // of one panel's chunk

LaunchWork work_of(const Kernel& kernel, const std::vector<TaskPart>& tasks) {
  Processor processor;
  processor.cache_bytes = 1 << 20;
  return gemm_work({&kernel, 1}, tasks, false, processor, two_bytes);
}

TEST(KernelWork, panels_are_rows_and_chunks_are_depth) {
  const LaunchWork work = work_of(gemm(3, 2, false), parts(6, kFlops));
  EXPECT_EQ(work.shape.batch, 1);
  EXPECT_NEAR(work.shape.rows, 96, 1e-9);
  EXPECT_NEAR(work.shape.columns, 64, 1e-9);
  EXPECT_NEAR(work.shape.depth, 32, 1e-9);
  EXPECT_EQ(work.shape.flops, 6 * kFlops);
  EXPECT_EQ(work.shape.bytes, 2.0 * (96 * 32 + 32 * 64 + 96 * 64)) << "B once, for all panels";
  EXPECT_EQ(work.again, 0) << "the cache holds B";
  EXPECT_EQ(work.carried, 0);
}

TEST(KernelWork, each_b_is_a_problem_of_its_own) {
  const LaunchWork work = work_of(gemm(3, 1, true), parts(3, kFlops));
  EXPECT_EQ(work.shape.batch, 3);
  EXPECT_NEAR(work.shape.rows, 32, 1e-9);
  EXPECT_EQ(work.shape.bytes, 2.0 * 3 * (32 * 16 + 16 * 64 + 32 * 64));
}

TEST(KernelWork, routes_leave_rows_unused) {
  const LaunchWork work = work_of(gemm(2, 1, false), parts(2, kFlops / 4));
  EXPECT_NEAR(work.shape.rows, 16, 1e-9);
  EXPECT_NEAR(work.shape.bytes, 2.0 * (16 * 16 + 16 * 64 + 16 * 64), 1e-6);
}

TEST(KernelWork, what_exceeds_the_cache_is_read_again_by_what_waits) {
  Kernel kernel = gemm(4, 1, false);
  kernel.arrivals[2].when = launch::SignalId(0);
  kernel.arrivals[3].when = launch::SignalId(1);
  Processor processor;  // without a cache
  const auto bytes = [&](bool is_one_tile) {
    return gemm_work({&kernel, 1}, parts(4, kFlops), is_one_tile, processor, two_bytes).shape.bytes;
  };
  const double b = 2.0 * 16 * 64;
  const double others = 2.0 * (128 * 16 + 128 * 64);
  EXPECT_EQ(bytes(false), others + 3 * b) << "two panels in step, and two that wait";
  EXPECT_EQ(bytes(true), others + b) << "one tile";
  const LaunchWork work = gemm_work({&kernel, 1}, parts(4, kFlops), false, processor, two_bytes);
  EXPECT_EQ(work.again, b) << "by each further wave";
  EXPECT_EQ(work.in_step, 2);
}

TEST(KernelWork, sums_that_go_on_are_read_first) {
  Kernel kernel = gemm(1, 1, false);
  kernel.panels.front().adds = true;
  const LaunchWork work = work_of(kernel, parts(1, kFlops));
  EXPECT_EQ(work.carried, 2.0 * 32 * 64);
  EXPECT_EQ(work.shape.bytes, 2.0 * (32 * 16 + 16 * 64 + 2 * 32 * 64));
}

TEST(KernelWork, attention_has_rows_by_panels_and_columns_by_arrivals) {
  Kernel kernel{.name = "attention_sm90", .variant = ""};
  for (int chunk = 0; chunk < 4; ++chunk) {
    const Interval keys{64 * chunk, 64 * chunk + 64};
    kernel.arrivals.push_back(
        {.reads = {place(kA, keys, {0, 8}), place(kB, keys, {0, 8})}, .when = {}});
  }
  Panel& panel = kernel.panels.emplace_back();
  panel.reads = {place(kC, {0, 32}, {0, 8}), place(kOther, {0, 32}, {0, 8})};
  panel.meets = {0, 1, 2, 3};
  panel.stores = {place(kOther, {0, 32}, {0, 8})};
  std::vector<TaskPart> tasks = parts(4, 10);
  for (TaskPart& task : tasks) {
    task.work.shape = {.batch = 1, .rows = 32, .columns = 64, .depth = 8, .flops = 10};
    task.row_elements = 32 * 8;
    task.column_elements = 64 * 8;
  }
  const LaunchWork work = attention_work({&kernel, 1}, tasks, false, two_bytes);
  EXPECT_EQ(work.shape.batch, 1);
  EXPECT_EQ(work.shape.rows, 32);
  EXPECT_EQ(work.shape.columns, 256);
  EXPECT_EQ(work.shape.flops, 40);
  EXPECT_EQ(work.carried, 2.0 * 32 * 8);
}

// A kernel of few queries: one key head of depth 8 for each of `sequences` sequences of 64 keys.
LaunchWork few_queries(const std::string& variant, std::int64_t sequences, std::int64_t heads) {
  const Interval depth{0, 8};
  const Interval keys{0, 64 * sequences};
  const Interval queries{0, heads * sequences};
  Kernel kernel{.name = "fa_fwd_sm90", .variant = variant};
  kernel.arrivals.push_back(
      {.reads = {place(kA, keys, depth), place(kB, keys, depth)}, .when = {}});
  Panel& panel = kernel.panels.emplace_back();
  panel.reads = {place(kC, queries, depth)};
  panel.meets = {0};
  std::vector<TaskPart> tasks = parts(1, 10);
  tasks.front().work.shape = {.batch = static_cast<double>(sequences),
                              .rows = static_cast<double>(heads),
                              .columns = 64,
                              .depth = 8,
                              .flops = 10};
  tasks.front().row_elements = static_cast<double>(8 * queries.size());
  tasks.front().column_elements = static_cast<double>(8 * keys.size());
  return attention_work({&kernel, 1}, tasks, false, two_bytes);
}

// The keys of four sequences in twelve shares: three parts each.
TEST(KernelWork, shares_of_keys_are_joined) {
  EXPECT_EQ(few_queries("keys in 12 shares", 4, 1).joined, 2);
  EXPECT_EQ(few_queries("keys in 4 shares", 4, 1).joined, 0);
}

// One key head with 32 query heads in two groups of 16: each reads the keys, in six shares, and
// joins states eight queries at a time.
TEST(KernelWork, groups_of_heads_read_the_keys_each) {
  const LaunchWork work = few_queries("keys in 12 shares heads in 2 groups", 1, 32);
  EXPECT_EQ(work.shape.batch, 2);
  EXPECT_EQ(work.shape.rows, 16);
  EXPECT_EQ(work.shape.columns, 64);
  EXPECT_EQ(work.shape.flops, 10);
  EXPECT_EQ(work.shape.bytes, 2.0 * (32 * 8 + 2 * 2 * 64 * 8));
  EXPECT_EQ(work.joined, 2 * (6 - 1));
}

// Two tasks add to one target, two to another.
TEST(KernelWork, waves_come_with_the_last_chunk) {
  const Ref one{.alloc = AllocId(0), .boxes = {}};
  const Ref other{.alloc = AllocId(1), .boxes = {}};
  std::vector<TaskPart> tasks = parts(4, 1);
  tasks[0].target = tasks[1].target = &one;
  tasks[2].target = tasks[3].target = &other;
  const std::vector<double> shares = shares_of(tasks, 4);
  EXPECT_EQ(shares, (std::vector<double>{1.0 / 16, 7.0 / 16, 1.0 / 16, 7.0 / 16}));
}

// Three K chunks of one panel, the last as deep as the others together, and a panel by itself.
TEST(KernelWork, tasks_in_a_row_that_add_to_one_target_are_one_panel) {
  const Ref one{.alloc = AllocId(0), .boxes = {}};
  const Ref other{.alloc = AllocId(1), .boxes = {}};
  std::vector<TaskPart> tasks = parts(4, 1);
  for (TaskPart& task : tasks) task.target = &one;
  tasks[3].target = &other;
  const std::array depths{64.0, 64.0, 128.0, 256.0};
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i].work.shape.depth = depths[i];
  number_panels(tasks);
  const std::array panels{0U, 0U, 0U, 1U};
  const std::array multiplied{0.0, 0.25, 0.5, 0.0};
  const std::array ends{false, false, true, true};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(tasks[i].panel, panels[i]) << i;
    EXPECT_EQ(tasks[i].multiplied, multiplied[i]) << i;
    EXPECT_EQ(tasks[i].ends_panel, ends[i]) << i;
  }
}

}  // namespace
}  // namespace harpe
