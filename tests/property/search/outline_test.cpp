#include "search/outline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compile/launches.h"
#include "search/evaluator.h"
#include "tests/unit/search/cases.h"

namespace harpe {
namespace {

struct Timed {
  double bound = 0;
  double outline = 0;
  double simulated = 0;
  double outlined_bytes = 0;
  double bytes = 0;
  std::string what;
};

// All candidates that lower, or every `step`th of a large space.
std::vector<Timed> time_all(const Case& one, std::int64_t step) {
  std::vector<Timed> all;
  SimulationEvaluator evaluator(one.program, one.mesh, one.machine,
                                [&](const Plan& plan) { return launches_on(plan, one.machine); });
  std::int64_t index = 0;
  for (const Candidate& candidate : candidates_of(one)) {
    if (index++ % step != 0) continue;
    const auto evaluation = evaluator.evaluate(form_of(one.problem, one.machine, candidate));
    if (!evaluation.ok()) continue;
    Candidate skeleton = candidate;
    for (CandidatePart& part : skeleton.part) part.way = {};
    const Outline shape = outline(one.problem, one.machine, candidate);
    all.push_back(
        {bound_of(one.problem, one.machine, skeleton).microseconds(), shape.time.microseconds(),
         evaluation->time.microseconds(), static_cast<double>(shape.memory_bytes),
         static_cast<double>(evaluation->memory_bytes), describe(one.problem, candidate)});
  }
  return all;
}

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// Ranks for the correlation; ties get the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k) ranks[order[k]] = static_cast<double>(i + j - 1) / 2;
    i = j;
  }
  return ranks;
}

double spearman(const std::vector<double>& first, const std::vector<double>& second) {
  const auto a = ranks_of(first);
  const auto b = ranks_of(second);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double both = 0;
  double of_a = 0;
  double of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean) * (b[i] - mean);
    of_a += (a[i] - mean) * (a[i] - mean);
    of_b += (b[i] - mean) * (b[i] - mean);
  }
  return both / std::sqrt(of_a * of_b);
}

std::vector<std::string> attention(std::vector<std::string> more) {
  more.insert(more.begin(), {"heads=8", "head_dim=128"});
  return more;
}

struct Sample {
  CaseText text;
  std::int64_t step = 1;
};

// On one level of switches, on a bus, and across two levels.
std::vector<Sample> all_samples() {
  std::vector<Sample> all;
  for (const char* machine : {"h200x8", "l4x8"}) {
    all.push_back({{"attention", attention({"seq=8192"}), "cp=4", machine, Contract::Standard, 0}});
    all.push_back({{"attention", attention({"seq=8192", "kv_heads=2"}), "cp=4", machine}, 15});
    all.push_back({{"attention", attention({"seq=8192", "causal=true"}), "cp=4", machine,
                    Contract::Standard, 0}});
    all.push_back({{"attention", attention({"seq=16384", "causal=true"}), "cp=8", machine}, 37});
    all.push_back({{"ag_gemm", {"m=4096", "n=4096", "k=4096"}, "tp=4", machine}, 5});
    all.push_back({{"gemm_rs", {"m=4096", "n=4096", "k=4096"}, "tp=8", machine}, 29});
    all.push_back({{"gemm_ar", {"m=1024", "n=4096", "k=4096"}, "tp=4", machine}, 5});
    all.push_back(
        {{"decode", {"batch=8", "kv=8192", "heads=16", "kv_heads=4"}, "tp=4", machine}, 3});
    all.push_back(
        {{"attention_bwd", attention({"seq=2048"}), "cp=4", machine, Contract::Standard, 0}});
  }
  const std::string pods = "h200x8x2";
  all.push_back(
      {{"attention", attention({"seq=16384"}), "node=2,gpu=8", pods, Contract::Standard, 0}, 23});
  all.push_back({{"attention", attention({"seq=16384", "causal=true"}), "node=2,gpu=8", pods,
                  Contract::Standard, 0},
                 47});
  all.push_back(
      {{"ag_gemm", {"m=8192", "n=8192", "k=8192"}, "node=2,gpu=8", pods, Contract::Standard, 0},
       15});
  all.push_back(
      {{"gemm_rs", {"m=8192", "n=8192", "k=8192"}, "node=2,gpu=8", pods, Contract::Standard, 0},
       15});
  all.push_back(
      {{"decode", {"batch=8", "kv=8192", "heads=16"}, "node=2,gpu=8", pods, Contract::Standard, 0},
       3});
  return all;
}

const std::vector<std::pair<Sample, std::vector<Timed>>>& timed_samples() {
  static const auto all = [] {
    std::vector<std::pair<Sample, std::vector<Timed>>> out;
    for (const Sample& sample : all_samples()) {
      out.emplace_back(sample, time_all(*make_case(sample.text), sample.step));
    }
    return out;
  }();
  return all;
}

TEST(Bound, is_never_above_the_simulated_time) {
  for (const auto& [sample, all] : timed_samples()) {
    ASSERT_FALSE(all.empty()) << print(sample.text);
    double tightest = 0;
    for (const Timed& one : all) {
      EXPECT_LE(one.bound, one.simulated) << print(sample.text) << ": " << one.what;
      tightest = std::max(tightest, one.bound / one.simulated);
    }
    EXPECT_GT(tightest, 0.1) << print(sample.text);
  }
}

TEST(Bound, is_never_above_the_outline) {
  for (const auto& [sample, all] : timed_samples()) {
    for (const Timed& one : all) {
      EXPECT_LE(one.bound, one.outline * (1 + 1e-9)) << print(sample.text) << ": " << one.what;
    }
  }
}

// The fastest of the outline's best 16, relative to the fastest of all.
double regret_of(std::vector<Timed> all) {
  std::ranges::sort(all, {}, &Timed::outline);
  const auto fastest = [](auto begin, auto end) {
    return std::ranges::min_element(begin, end, {}, &Timed::simulated)->simulated;
  };
  const auto few = static_cast<std::ptrdiff_t>(std::min<std::size_t>(16, all.size()));
  return fastest(all.begin(), all.begin() + few) / fastest(all.begin(), all.end());
}

TEST(Outline, orders_schedules_as_the_simulator_does) {
  std::vector<double> orders;
  for (const auto& [sample, all] : timed_samples()) {
    std::vector<double> errors;
    std::vector<double> outlined;
    std::vector<double> simulated;
    for (const Timed& one : all) {
      outlined.push_back(one.outline);
      simulated.push_back(one.simulated);
      errors.push_back(std::abs(one.outline / one.simulated - 1));
    }
    const double order = spearman(outlined, simulated);
    std::printf("%-100s %5zu median %5.1f %% p90 %5.1f %% spearman %.3f regret %.3f\n",
                print(sample.text).c_str(), all.size(), 100 * quantile(errors, 0.5),
                100 * quantile(errors, 0.9), order, regret_of(all));
    orders.push_back(order);
    EXPECT_GE(order, 0.7) << print(sample.text);
    EXPECT_LE(quantile(errors, 0.5), 0.35) << print(sample.text);
    EXPECT_LE(regret_of(all), 1.1) << print(sample.text);
  }
  std::printf("median spearman %.3f\n", quantile(orders, 0.5));
  EXPECT_GE(quantile(orders, 0.5), 0.88);
}

// The outline ignores images of strided regions and inboxes of exchanges.
TEST(Outline, counts_memory_roughly_as_plans_do) {
  for (const auto& [sample, all] : timed_samples()) {
    std::vector<double> errors;
    for (const Timed& one : all) errors.push_back(std::abs(one.outlined_bytes / one.bytes - 1));
    EXPECT_LE(quantile(errors, 0.5), 0.45) << print(sample.text);
    EXPECT_LE(quantile(errors, 0.9), 0.7) << print(sample.text);
  }
}

}  // namespace
}  // namespace harpe
