#include <random>
#include <set>

#include "tests/unit/exec/fixture.h"

namespace harpe::test {
namespace {

using Bits = std::vector<std::byte>;

// Runs one interleaving: choices[i] picks among the ready queues at step i, 0 beyond the end.
// Returns the number of ready queues at each step in `widths`.
struct Interleaving {
  std::vector<std::size_t> choices;
  std::vector<std::size_t> widths = {};
};

Bits run_one(const Plan& plan, Interleaving& interleaving, std::int64_t iterations) {
  interleaving.widths.clear();
  CpuOptions options{.runner = QueueRunner::Stepper};
  options.choose = [&](std::size_t ready) {
    const std::size_t step = interleaving.widths.size();
    interleaving.widths.push_back(ready);
    return step < interleaving.choices.size() ? interleaving.choices[step] : 0;
  };
  return bits_of(plan, options, {.iterations = iterations});
}

// All results of the plan's interleavings, explored depth first up to `limit`.
std::set<Bits> explore(const Plan& plan, std::int64_t limit, std::int64_t& explored) {
  std::set<Bits> results;
  Interleaving interleaving;
  for (explored = 0; explored < limit;) {
    results.insert(run_one(plan, interleaving, 1));
    ++explored;
    std::vector<std::size_t>& choices = interleaving.choices;
    choices.resize(interleaving.widths.size(), 0);
    while (!choices.empty() && choices.back() + 1 == interleaving.widths[choices.size() - 1]) {
      choices.pop_back();
    }
    if (choices.empty()) return results;
    ++choices.back();
  }
  return results;
}

std::set<Bits> sample(const Plan& plan, std::int64_t runs, std::int64_t iterations) {
  std::mt19937_64 random(7);
  std::set<Bits> results;
  Subject subject =
      prepare(plan, {.runner = QueueRunner::Stepper, .choose = [&](std::size_t ready) {
                       return static_cast<std::size_t>(random() % ready);
                     }});
  for (std::int64_t i = 0; i < runs; ++i) {
    run(subject, {.iterations = iterations});
    results.insert(subject.executor->output("c").value().data);
  }
  return results;
}

TEST(Interleave, leaves_one_result_in_every_interleaving_of_a_tiny_plan) {
  std::int64_t explored = 0;
  EXPECT_EQ(explore(scatter_gemm(2, 2, 1, 2, "f32", false), 50'000, explored).size(), 1U);
  EXPECT_GT(explored, 100);
  EXPECT_LT(explored, 50'000) << "not exhausted";
}

TEST(Interleave, leaves_one_result_in_every_interleaving_of_a_collective) {
  std::int64_t explored = 0;
  EXPECT_EQ(explore(exchange(2, 2, true), 50'000, explored).size(), 1U);
  EXPECT_GT(explored, 100);
  EXPECT_LT(explored, 50'000) << "not exhausted";
}

TEST(Interleave, finds_the_interleaving_in_which_a_missing_signal_is_missed) {
  Plan plan = gather_gemm(2, 2, 2, 1, "f32");
  std::erase_if(plan.syncs, [&](const Sync& sync) {  // a kernel may read the slot too early
    return plan.tasks[sync.from.index()].kind == TaskKind::Copy &&
           plan.tasks[sync.to.index()].kind == TaskKind::Compute;
  });
  EXPECT_GT(sample(plan, 200, 1).size(), 1U);
}

TEST(Interleave, leaves_one_result_in_fifty_thousand_random_interleavings) {
  const Plan plans[] = {gather_gemm(3, 3, 3, 2, "f32"), scatter_gemm(3, 3, 2, 3, "f32", false),
                        scatter_gemm(3, 3, 2, 3, "f32", true)};
  for (const Plan& plan : plans) {
    EXPECT_EQ(sample(plan, 17'000, 1).size(), 1U);
    EXPECT_EQ(sample(plan, 100, 20).size(), 1U);  // with overlapping executions
  }
}

}  // namespace
}  // namespace harpe::test
