// Searches on many ranks: only proved plans are answers, and the limit stops inner stages too.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

#include "lower/lower.h"
#include "search/evaluator.h"
#include "search/search.h"
#include "support/check.h"
#include "tests/unit/search/cases.h"

namespace harpe {
namespace large_test {

Checked<SearchResult> search_case(const Case& one, const SearchOptions& options) {
  return search(one.program, one.mesh, one.machine, options);
}

std::unique_ptr<Case> large_case() {
  return make_case({"attention", {"seq=65536"}, "node=16,gpu=8", "h200x8x16"});
}

TEST(LargeSearch, answers_with_the_fastest_plan_and_its_proof) {
  const auto one = large_case();
  SearchOptions options = one->options();
  int proofs = 0;
  options.prove = [&](const Plan& plan, const TimeLimit&) -> Checked<Ok> {
    ++proofs;
    EXPECT_EQ(plan.mesh.ranks(), 128);
    return Ok{};
  };
  const Checked<SearchResult> result = search_case(*one, options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->complete);
  EXPECT_FALSE(result->given_up);
  EXPECT_TRUE(result->top.front().proved);
  EXPECT_GT(proofs, 0);
  for (const Evaluated& each : result->top) {
    EXPECT_TRUE(!each.simulated || result->top.front().time() <= each.time()) << each.label;
  }
}

TEST(LargeSearch, named_schedules_whose_plans_are_small_take_part) {
  const auto one = large_case();
  SearchOptions options = one->options();
  const Checked<SearchResult> result = search_case(*one, options);
  ASSERT_TRUE(result.ok());
  ASSERT_FALSE(result->baselines.empty());
  for (const Evaluated& named : result->baselines) EXPECT_TRUE(named.simulated) << named.label;
}

TEST(LargeSearch, compares_named_schedules_of_programs_without_a_space) {
  const auto one =
      make_named_case({"moe",
                       {"tokens=256", "experts=128", "topk=2", "hidden=64", "inter=64"},
                       "x=128",
                       "h200x8x16"});
  const Checked<SearchResult> result = search_case(*one, one->options());
  ASSERT_TRUE(result.ok()) << render(result.error());
  EXPECT_GT(result->baselines.size(), 3U);
  EXPECT_TRUE(result->top.front().named);
  EXPECT_TRUE(result->top.front().simulated);
}

// After the first proof only the fastest plan is proved, and the next one if it is refused.
std::unique_ptr<Case> case_of_several_plans() {
  return make_case({"gemm_rs", {"m=16384", "n=8192", "k=8192"}, "node=16,gpu=8", "h200x8x16"});
}

TEST(LargeSearch, proves_the_first_plan_and_the_fastest) {
  const auto one = case_of_several_plans();
  SearchOptions options = one->options();
  options.cuts = 0;
  int proofs = 0;
  options.prove = [&](const Plan&, const TimeLimit&) -> Checked<Ok> {
    ++proofs;
    return Ok{};
  };
  const Checked<SearchResult> late = search_case(*one, options);
  ASSERT_TRUE(late.ok());
  EXPECT_GT(late->simulated, 2);
  EXPECT_LE(proofs, 2);
  options.budget = std::chrono::hours(1);  // with time left, each faster plan is proved
  const Checked<SearchResult> early = search_case(*one, options);
  ASSERT_TRUE(early.ok());
  EXPECT_TRUE(early->complete);
  EXPECT_TRUE(late->top.front().proved);
  EXPECT_EQ(late->top.front().form, early->top.front().form);
  EXPECT_EQ(late->top.front().simulated, early->top.front().simulated);
}

TEST(LargeSearch, proves_the_next_where_the_fastest_is_refused) {
  const auto one = case_of_several_plans();
  SearchOptions options = one->options();
  options.cuts = 0;
  int proofs = 0;
  options.prove = [&](const Plan&, const TimeLimit&) -> Checked<Ok> {
    if (++proofs != 2) return Ok{};
    return make_diag(DiagCode::V203, {{"what", "this plan"}, {"limit", 0}});
  };
  const Checked<SearchResult> result = search_case(*one, options);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->refused.size(), 1U);
  EXPECT_TRUE(result->top.front().proved);
  EXPECT_TRUE(result->top.front().simulated);
  for (const Evaluated& each : result->top) {
    EXPECT_TRUE(!each.simulated || result->top.front().time() <= each.time()) << each.label;
  }
}

// A plan that cannot be proved is never an answer.
TEST(LargeSearch, passes_over_plans_that_are_not_proved) {
  const auto one = large_case();
  SearchOptions options = one->options();
  options.prove = [](const Plan&, const TimeLimit&) -> Checked<Ok> {
    return make_diag(DiagCode::V203, {{"what", "this plan"}, {"limit", 0}});
  };
  const Checked<SearchResult> result = search_case(*one, options);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->top.front().simulated);
  ASSERT_FALSE(result->refused.empty());
}

TEST(LargeSearch, answers_with_what_was_proved_when_the_time_ends) {
  const auto one = large_case();
  SearchOptions options = one->options();
  bool over = false;
  options.interrupted = [&] { return over; };
  options.prove = [&](const Plan&, const TimeLimit&) -> Checked<Ok> {
    over = true;
    return Ok{};
  };
  const Checked<SearchResult> result = search_case(*one, options);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->complete);
  EXPECT_TRUE(result->top.front().proved);
  EXPECT_TRUE(result->top.front().simulated);
}

TEST(LargeSearch, an_estimate_is_no_answer_when_the_time_ends) {
  const auto one = large_case();
  SearchOptions options = one->options();
  bool over = false;
  options.interrupted = [&] { return over; };
  options.prove = [&](const Plan&, const TimeLimit& limit) {
    over = true;
    return limit.check("the proof");
  };
  const Checked<SearchResult> result = search_case(*one, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, DiagCode::S702);
  EXPECT_NE(render(result.error()).find("before any plan of its 128 ranks"), std::string::npos);
}

// After the first proof the time ends while the next plan is made. Most checks of the limit are
// then in its lowering and simulation.
TEST(LargeSearch, gives_up_the_plan_that_is_being_made_when_the_time_ends) {
  const auto one = large_case();
  SearchOptions options = one->options();
  int asked = 0;
  bool proved = false;
  options.interrupted = [&] { return proved && ++asked > 10; };
  options.prove = [&](const Plan&, const TimeLimit&) -> Checked<Ok> {
    proved = true;
    return Ok{};
  };
  const Checked<SearchResult> result = search_case(*one, options);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->complete);
  EXPECT_TRUE(result->given_up);
  EXPECT_TRUE(result->top.front().proved);
}

TEST(LargeSearch, an_evaluation_is_given_up_while_it_lowers_and_while_it_simulates) {  // I505
  const auto one = make_case({"gemm_rs", {"m=1024", "n=1024", "k=1024"}, "tp=4", "h200x8"});
  const Checked<SearchResult> found = search_case(*one, one->options());
  ASSERT_TRUE(found.ok());
  const NormalForm& form = found->top.front().form;
  int asked = 0;
  int left = 0;
  const TimeLimit limit{.end = std::nullopt, .interrupted = [&] { return ++asked > left; }};
  std::set<std::string> given_up;
  while (true) {
    asked = 0;
    SimulationEvaluator evaluator(one->program, one->mesh, one->machine, {}, limit);
    const Checked<Evaluation> evaluation = evaluator.evaluate(form);
    if (evaluation.ok()) break;
    ASSERT_EQ(evaluation.error().code, DiagCode::I505);
    given_up.insert(render(evaluation.error()).substr(13, 18));
    ++left;
  }
  EXPECT_EQ(given_up, (std::set<std::string>{"lowering the sched", "simulating the pla"}));
}

// The plan of 1,024 ranks takes longer than the budget.
TEST(LargeSearch, ends_within_its_budget_while_it_makes_a_plan) {
  const auto one =
      make_case({"gemm_rs", {"m=65536", "n=8192", "k=65536"}, "node=128,gpu=8", "h200x8x128"});
  SearchOptions options = one->options();
  options.budget = std::chrono::milliseconds(1500);
  options.prove = [](const Plan&, const TimeLimit&) -> Checked<Ok> { return Ok{}; };
  const auto begun = std::chrono::steady_clock::now();
  const Checked<SearchResult> result = search_case(*one, options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  EXPECT_LT(seconds.count(), 4);
  if (result.ok()) {
    EXPECT_FALSE(result->complete);
    EXPECT_TRUE(result->top.front().proved);
    EXPECT_TRUE(result->given_up || result->plans_left > 0);
  } else {
    EXPECT_EQ(result.error().code, DiagCode::S702);
  }
}

}  // namespace large_test
}  // namespace harpe
