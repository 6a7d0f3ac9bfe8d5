#include "measure/bench.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compile/library_operators.h"
#include "compile/session.h"
#include "measure/bench_inputs.h"

namespace harpe {
namespace {

BenchEntry entry(const std::string& name, bool is_baseline, double us) {
  BenchEntry made;
  made.name = name;
  made.is_baseline = is_baseline;
  made.median_us = us;
  return made;
}

BenchRow row_of(std::vector<BenchEntry> entries) {
  BenchRow row;
  row.entries = std::move(entries);
  return row;
}

TEST(BenchRow, takes_the_fastest_of_each_side) {
  BenchRow row = row_of({entry("a", true, 20), entry("b", true, 30), entry("ring", false, 16),
                         entry("bulk", false, 10)});
  EXPECT_EQ(row.best(false)->name, "bulk");
  EXPECT_EQ(row.best(true)->name, "a");
  EXPECT_DOUBLE_EQ(*row.ratio(), 2);
  row.limit = {.arithmetic_us = 5, .link_us = 6, .fixed_us = 2};
  EXPECT_DOUBLE_EQ(*row.over_limit(), 1.25);
}

TEST(BenchRow, leaves_out_what_is_wrong) {
  BenchRow row = row_of({entry("a", true, 20), entry("ring", false, 16), entry("bulk", false, 10)});
  row.entries[2].difference = 0.5;
  row.entries[2].bound = 0.1;
  EXPECT_EQ(row.best(false)->name, "ring");
  row.entries[1].difference = std::nan("");
  row.entries[1].bound = 0.1;
  EXPECT_EQ(row.best(false), nullptr);
  EXPECT_FALSE(row.ratio().has_value());
  BenchReport report;
  report.rows = {row};
  EXPECT_TRUE(report.is_wrong());
  EXPECT_FALSE(report.is_whole());
}

// Rounds in which the library takes `theirs` and Harpe takes `ours`.
BenchRow row_of_rounds(double theirs, const std::vector<double>& ours) {
  BenchRow row = row_of({entry("a", true, theirs), entry("ring", false, quantile(ours, 0.5))});
  for (std::size_t round = 0; round < ours.size(); ++round) {
    row.entries[0].round_us[static_cast<std::int64_t>(round)] = theirs;
    row.entries[1].round_us[static_cast<std::int64_t>(round)] = ours[round];
  }
  return row;
}

TEST(BenchRow, calls_a_case_slower_or_faster_from_twenty_rounds_on) {
  const auto verdict = [](double ours, std::size_t rounds) {
    return row_of_rounds(100, std::vector<double>(rounds, ours)).paired()->verdict();
  };
  EXPECT_EQ(verdict(90, 19), std::nullopt);
  EXPECT_EQ(verdict(90, 20), PairedSpeedup::Verdict::Faster);
  EXPECT_EQ(verdict(99, 20), PairedSpeedup::Verdict::Level);
  EXPECT_EQ(verdict(101, 20), PairedSpeedup::Verdict::Level);
  EXPECT_EQ(verdict(103, 20), PairedSpeedup::Verdict::Slower);
  // Half of the rounds are a tenth faster than the library, half are slower.
  std::vector<double> mixed(10, 90);
  mixed.insert(mixed.end(), 10, 110);
  EXPECT_EQ(row_of_rounds(100, mixed).paired()->verdict(), PairedSpeedup::Verdict::Level);
}

TEST(BenchRow, compares_a_round_with_the_same_round) {
  BenchRow row = row_of_rounds(100, {50, 50, 50});
  // Clocks fell: the library took twice as long in rounds without Harpe.
  for (std::int64_t round = 3; round < 9; ++round) row.entries[0].round_us[round] = 200;
  EXPECT_DOUBLE_EQ(row.paired()->median, 2);
  EXPECT_EQ(row.paired()->rounds, 3);
  EXPECT_FALSE(row.paired()->interval.has_value());
  row.entries[1].round_us.clear();
  EXPECT_FALSE(row.paired().has_value());
}

TEST(Limit, is_the_longer_of_arithmetic_and_link_and_what_every_execution_pays) {
  EXPECT_FALSE((Limit{.arithmetic_us = {}, .link_us = 8, .fixed_us = 6}).total_us().has_value());
  EXPECT_DOUBLE_EQ(*(Limit{.arithmetic_us = 5, .link_us = 8, .fixed_us = 6}).total_us(), 14);
  EXPECT_DOUBLE_EQ(*(Limit{.arithmetic_us = 9, .memory_us = 12, .link_us = 8}).total_us(), 12);
  EXPECT_DOUBLE_EQ(*(Limit{.arithmetic_us = 30, .memory_us = 12, .is_of_memory = true}).total_us(),
                   12);
}

TEST(Limit, of_decode_is_reading_keys_and_values) {
  Session session(false);
  Request request;
  request.target = "decode";
  request.parameters = {"batch=8", "kv=32768", "heads=64", "kv_heads=8", "head_dim=128"};
  const auto program = session.program(request);
  ASSERT_TRUE(program.ok());
  const Limit limit = make_limit(*program, "decode", 2);
  EXPECT_DOUBLE_EQ(limit.memory_us, 2.0 * 8 * 32768 * 8 * 128 * 2 / 2 / 4.3e6);
  EXPECT_TRUE(limit.is_of_memory);
  EXPECT_DOUBLE_EQ(limit.fixed_us, 8);
}

TEST(BenchReport, has_the_mean_of_ratios_and_the_worst_case) {
  BenchReport report;
  report.rows = {row_of({entry("a", true, 40), entry("b", false, 10)}),
                 row_of({entry("a", true, 10), entry("b", false, 10)}),
                 row_of({entry("b", false, 10)})};
  EXPECT_NEAR(*report.geometric_mean(), 2, 1e-12);
  EXPECT_EQ(report.worst(), &report.rows[1]);
}

TEST(BenchInputs, differences_are_relative_to_the_row) {
  HostTensor wanted = make_tensor(DType::F32, {2, 2});
  HostTensor got = make_tensor(DType::F32, {2, 2});
  store(wanted, 0, 8);
  store(got, 0, 8);
  store(got, 1, 2);
  store(wanted, 2, 100);
  store(got, 2, 101);
  EXPECT_DOUBLE_EQ(largest_difference(got, wanted, false), 0.25);
  store(got, 3, std::nan(""));
  EXPECT_TRUE(std::isinf(largest_difference(got, wanted, false)));
}

TEST(Limit, gradients_cross_a_link_by_heads_or_by_keys) {
  Session session(false);
  const auto bytes = [&](const std::string& heads) {
    Request request;
    request.target = "attention_bwd";
    request.parameters = {"seq=1024", "heads=" + heads, "kv_heads=8", "head_dim=128"};
    const auto program = session.program(request);
    EXPECT_TRUE(program.ok());
    return least_link_bytes(*program, 4);
  };
  // k, v, dk and dv of three quarters of the keys; q, do, dq and two sums per row, of a quarter.
  EXPECT_DOUBLE_EQ(bytes("32"), 0.75 * 4 * 1024 * 8 * 128 * 2);
  EXPECT_DOUBLE_EQ(bytes("8"), 0.75 / 4 * (7 * 1024 * 8 * 128 * 2 + 2 * 8 * 1024 * 4));
}

TEST(BenchCases, are_there_for_every_suite_and_back_end) {
  for (const std::string& suite : library_operators()) {
    for (const Backend backend : {Backend::Cpu, Backend::Cuda}) {
      const auto cases = bench_cases(suite, backend, 4);
      ASSERT_TRUE(cases.ok()) << suite;
      EXPECT_FALSE(cases->empty()) << suite;
    }
  }
  EXPECT_EQ(bench_cases("ag_gemm", Backend::Cuda, 4)->size(), 9);
  EXPECT_EQ(bench_cases("attention", Backend::Cuda, 4)->size(), 16);
  EXPECT_EQ(bench_cases("attention_bwd", Backend::Cuda, 4)->size(), 16);
  EXPECT_EQ(bench_cases("decode", Backend::Cuda, 4)->size(), 11);
  EXPECT_EQ(bench_cases("moe", Backend::Cuda, 4)->size(), 9);
}

TEST(BenchCases, have_as_many_tokens_on_each_rank) {
  for (const std::int64_t ranks : {4, 8}) {
    const auto cases = bench_cases("moe", Backend::Cuda, ranks);
    EXPECT_EQ(cases->front().name, "deepseek_v3 128 tokens a rank");
    EXPECT_EQ(cases->front().parameters.front(), "tokens=" + std::to_string(128 * ranks));
  }
}

TEST(BenchMemory, is_off_from_a_tenth_on) {
  EXPECT_FALSE((BenchMemory{.planned = 100, .allocated = 50, .taken = 110}).is_off());
  EXPECT_TRUE((BenchMemory{.planned = 100, .allocated = 100, .taken = 111}).is_off());
  EXPECT_TRUE((BenchMemory{.planned = 100, .allocated = 100, .taken = 89}).is_off());
  EXPECT_TRUE((BenchMemory{.planned = 100, .allocated = 111, .taken = {}}).is_off());
}

TEST(GpuMemory, that_is_taken_adds_up_by_gpu) {
  std::vector<std::int64_t> taken;
  add_taken({100, 100}, {90, 70}, taken);
  add_taken({90, 70}, {}, taken);
  add_taken({90, 70}, {85, 72}, taken);
  EXPECT_EQ(taken, (std::vector<std::int64_t>{15, 28}));
}

}  // namespace
}  // namespace harpe
