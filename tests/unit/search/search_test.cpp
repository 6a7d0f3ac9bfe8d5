#include "search/search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lower/lower.h"
#include "search/canonical.h"
#include "search/evaluator.h"
#include "support/check.h"
#include "tests/unit/search/cases.h"

namespace harpe {
namespace search_test {

Checked<SearchResult> search_case(const Case& one, const SearchOptions& options) {
  return search(one.program, one.mesh, one.machine, options);
}

SearchResult expect_result(const Case& one, const SearchOptions& options) {
  Checked<SearchResult> result = search_case(one, options);
  HP_CHECK(result.ok(), print(one.text) + (result.ok() ? "" : render(result.error())));
  return std::move(result).value();
}

double time_of(const SearchResult& result) { return result.top.front().time().microseconds(); }

std::unique_ptr<Case> causal_case() {
  return make_case({"attention", {"seq=8192", "heads=8", "head_dim=64", "causal=true"}, "cp=4"});
}

TEST(Search, answers_the_same_twice) {
  for (const Contract contract : {Contract::Standard, Contract::Free}) {
    const auto one = causal_case();
    SearchOptions options = one->options();
    options.contract = contract;
    const SearchResult first = expect_result(*one, options);
    const SearchResult second = expect_result(*one, options);
    ASSERT_EQ(first.top.size(), second.top.size());
    for (std::size_t i = 0; i < first.top.size(); ++i) {
      EXPECT_EQ(first.top[i].form, second.top[i].form);
      EXPECT_EQ(first.top[i].time(), second.top[i].time());
      EXPECT_EQ(first.top[i].label, second.top[i].label);
    }
    EXPECT_EQ(first.estimated, second.estimated);
    EXPECT_EQ(first.simulated, second.simulated);
    EXPECT_EQ(first.pruned, second.pruned);
  }
}

TEST(Search, shows_plans_that_are_made_and_timed_as_it_says) {
  const auto one = causal_case();
  const SearchResult result = expect_result(*one, one->options());
  SimulationEvaluator evaluator(one->program, one->mesh, one->machine, {});
  for (const Evaluated& each : result.top) {
    const Checked<Evaluation> again = evaluator.evaluate(each.form);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->time, *each.simulated);
    EXPECT_EQ(again->memory_bytes, each.memory_bytes);
    EXPECT_LE(each.bound, each.time());
  }
  EXPECT_TRUE(std::ranges::is_sorted(result.top, {}, [](const Evaluated& e) { return e.time(); }));
}

TEST(Search, keeps_to_the_memory_limit) {
  const auto one =
      make_case({"attention", {"seq=8192", "heads=8", "kv_heads=2", "head_dim=128"}, "cp=8"});
  SearchOptions options = one->options();
  const SearchResult free = expect_result(*one, options);
  const std::int64_t least = free.front.back().memory_bytes;
  ASSERT_LT(least, free.top.front().memory_bytes);
  options.memory_limit = free.top.front().memory_bytes - 1;
  const SearchResult limited = expect_result(*one, options);
  for (const Evaluated& each : limited.top) EXPECT_LE(each.memory_bytes, *options.memory_limit);
  for (const Evaluated& each : limited.front) EXPECT_LE(each.memory_bytes, *options.memory_limit);
  // Candidates that are not about 0.1 % faster than the best known are pruned.
  EXPECT_GE(time_of(limited), 0.998 * time_of(free));
}

TEST(Search, names_the_nearest_where_nothing_fits) {
  const auto one = causal_case();
  SearchOptions options = one->options();
  options.memory_limit = 1000;
  const Checked<SearchResult> result = search_case(*one, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, DiagCode::S701);
  const std::string text = render(result.error());
  options.memory_limit.reset();
  options.exhaustive = true;
  options.cuts = 0;
  std::int64_t least = INT64_MAX;
  for (const Evaluated& each : expect_result(*one, options).front) {
    least = std::min(least, each.memory_bytes);
  }
  // The search examines only fast candidates; the smallest memory among them is near the minimum.
  const std::string needs = "needs ";
  const std::int64_t needed = std::stoll(text.substr(text.find(needs) + needs.size()));
  EXPECT_GE(needed, least);
  EXPECT_LE(needed, 2 * least) << text;
}

TEST(Search, answers_with_what_it_has_when_it_is_interrupted) {
  const auto one = causal_case();
  SearchOptions options = one->options();
  int asked = 0;
  options.interrupted = [&] { return ++asked > 5; };
  const SearchResult part = expect_result(*one, options);
  EXPECT_FALSE(part.complete);
  ASSERT_FALSE(part.top.empty());
  EXPECT_TRUE(lower(one->program, one->mesh, part.top.front().form).ok());
  options.interrupted = [] { return false; };
  const SearchResult whole = expect_result(*one, options);
  EXPECT_TRUE(whole.complete);
  EXPECT_LE(time_of(whole), time_of(part));
}

// Even if the fixed homes exclude every named schedule, one candidate of the space is simulated.
TEST(Search, has_an_answer_however_early_it_is_interrupted) {
  const auto one = make_case({"attention", {"seq=256", "heads=8"}, "cp=4", "h200x8"});
  for (const bool fixes_homes : {false, true}) {
    SearchOptions options = one->options();
    if (fixes_homes) options.constraints.homes = {Place{.buffer = "k", .at = {}, .partial = {}}};
    options.interrupted = [] { return true; };
    const SearchResult result = expect_result(*one, options);
    EXPECT_FALSE(result.complete);
    ASSERT_FALSE(result.top.empty());
    EXPECT_TRUE(result.top.front().simulated);
  }
}

TEST(Search, says_so_when_it_is_ended_before_anything_was_evaluated) {
  const auto one = make_case({"attention", {"seq=65536"}, "node=16,gpu=8", "h200x8x16"});
  SearchOptions options = one->options();  // too many ranks to plan the named schedules
  options.interrupted = [] { return true; };
  const Checked<SearchResult> result = search_case(*one, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, DiagCode::S702);
  EXPECT_NE(render(result.error()).find("error[S702]"), std::string::npos);
}

TEST(Search, ends_within_its_budget) {
  const auto one = make_case({"attention", {"seq=8192", "heads=8"}, "node=2,gpu=4", "h200x8"});
  SearchOptions options = one->options();
  options.exhaustive = true;  // some hundred thousand candidates
  options.budget = std::chrono::milliseconds(300);
  const SearchResult result = expect_result(*one, options);
  EXPECT_FALSE(result.complete);
  EXPECT_FALSE(result.top.empty());
  EXPECT_LT(result.seconds, 3);
}

TEST(Search, is_never_slower_when_homes_are_free) {
  for (const CaseText& text :
       {CaseText{"attention", {"seq=8192", "heads=8", "kv_heads=2"}, "cp=4"},
        CaseText{"gemm", {"m=4096", "n=4096", "k=4096"}, "tp=4"},
        CaseText{"gemm_rs", {"m=4096", "n=4096", "k=4096"}, "tp=8"},
        CaseText{"attention", {"seq=8192", "heads=8", "causal=true"}, "node=2,gpu=4"}}) {
    const auto one = make_case(text);
    SearchOptions options = one->options();
    const SearchResult standard = expect_result(*one, options);
    options.contract = Contract::Free;
    const SearchResult free = expect_result(*one, options);
    EXPECT_LE(time_of(free), time_of(standard)) << print(text);
    EXPECT_GE(free.candidates, standard.candidates) << print(text);
  }
}

TEST(Search, keeps_homes_that_are_fixed) {
  const auto one = make_case({"gemm", {"m=4096", "n=4096", "k=4096"}, "tp=4"});
  SearchOptions options = one->options();
  const Place rows{.buffer = "a", .at = {{"M", {"tp"}}}, .partial = {}};
  const Place columns{.buffer = "a", .at = {{"K", {"tp"}}}, .partial = {}};
  for (const Place& place : {rows, columns}) {
    options.constraints.homes = {place};
    const Checked<Problem> problem = make_problem(one->program, one->mesh, one->standard, options);
    ASSERT_TRUE(problem.ok());
    const SearchGroup& a = problem->groups.front();
    ASSERT_EQ(a.buffers.front(), "a");
    EXPECT_EQ(problem->axes[static_cast<std::size_t>(a.home.front())].name, place.at[0].digit);
    for (const Contract contract : {Contract::Standard, Contract::Free}) {
      options.contract = contract;
      for (const Evaluated& each : expect_result(*one, options).top) {
        const Place* home = find_place(each.form, "a");
        ASSERT_NE(home, nullptr);
        for (const Placement& at : home->at) {
          const Split* split = find_split(each.form, place.at[0].digit);
          EXPECT_TRUE(split != nullptr && std::ranges::find(split->digits, at.digit,
                                                            &Digit::name) != split->digits.end())
              << each.label;
        }
      }
    }
  }
}

TEST(Search, has_a_front_of_time_and_memory) {
  const auto one = causal_case();
  SearchOptions options = one->options();
  options.exhaustive = true;
  options.cuts = 0;
  options.top = 1000;
  const SearchResult result = expect_result(*one, options);
  ASSERT_GT(result.front.size(), 2U);
  EXPECT_EQ(result.front.front().time(), result.top.front().time());
  for (std::size_t i = 1; i < result.front.size(); ++i) {
    EXPECT_GE(result.front[i].time(), result.front[i - 1].time());
    EXPECT_LT(result.front[i].memory_bytes, result.front[i - 1].memory_bytes);
  }
  for (const Evaluated& each : result.top) {
    const bool dominated = std::ranges::any_of(result.front, [&](const Evaluated& on) {
      return on.time() <= each.time() && on.memory_bytes <= each.memory_bytes;
    });
    EXPECT_TRUE(dominated) << each.label;
  }
}

TEST(Search, is_never_slower_than_the_named_schedules) {
  for (const CaseText& text :
       {CaseText{"attention", {"seq=16384", "heads=8", "causal=true"}, "cp=8"},
        CaseText{"attention_bwd", {"seq=4096", "heads=8"}, "cp=4"},
        CaseText{"gemm_ar", {"m=1024", "n=1024", "k=1024"}, "tp=8"},
        CaseText{"decode", {"batch=8", "kv=8192"}, "node=2,gpu=4"}, CaseText{"moe", {}, "ep=8"}}) {
    const auto one = make_named_case(text);
    const SearchResult result = expect_result(*one, one->options());
    ASSERT_FALSE(result.baselines.empty()) << print(text);
    for (const Evaluated& named : result.baselines) {
      EXPECT_TRUE(named.named) << print(text) << ": " << named.label;
      if (!named.excluded.empty()) continue;
      EXPECT_LE(time_of(result), named.time().microseconds()) << named.label;
    }
  }
}

TEST(Search, has_no_space_where_nothing_says_where_homes_are) {
  const auto one = causal_case();
  SearchOptions options = one->options();
  options.family.clear();
  const Checked<SearchResult> result = search_case(*one, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, DiagCode::S703);
}

TEST(Search, knows_named_schedules_by_transports_that_the_machine_has) {
  const auto one =
      make_case({"attention", {"seq=4096", "heads=8"}, "node=2,gpu=2"}, node_machine({}));
  const SearchResult result = expect_result(*one, one->options());
  std::vector<std::string> labels;
  for (const Evaluated& named : result.baselines) labels.push_back(named.label);
  EXPECT_NE(std::ranges::find(labels, "double_ring"), labels.end());
  EXPECT_NE(std::ranges::find(labels, "ring"), labels.end());
}

// Outlines alone must not decide on so many ranks: the best candidates get plans.
TEST(Search, makes_plans_of_the_best_on_256_ranks) {
  const auto one =
      make_case({"gemm_rs", {"m=8192", "n=2048", "k=8192"}, "node=32,gpu=8", "h200x8x32"});
  const SearchResult result = expect_result(*one, one->options());
  ASSERT_GT(result.simulated, 1);
  const Evaluated& best = result.top.front();
  ASSERT_TRUE(best.simulated.has_value());
  SimulationEvaluator evaluator(one->program, one->mesh, one->machine, {});
  const Checked<Evaluation> again = evaluator.evaluate(best.form);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->time, *best.simulated);
  EXPECT_EQ(again->memory_bytes, best.memory_bytes);
  bool simulated = true;  // simulated ones come first, by time
  for (std::size_t i = 1; i < result.top.size(); ++i) {
    EXPECT_TRUE(simulated || !result.top[i].simulated);
    simulated = result.top[i].simulated.has_value();
    if (simulated) {
      EXPECT_LE(result.top[i - 1].time(), result.top[i].time());
    }
  }
}

TEST(Search, refuses_more_ranks_than_the_machine_has) {
  const auto one = make_case({"attention", {"seq=4096", "heads=8"}, "cp=16", "h200x8x2"});
  const Machine small = flat_machine("switch", 8, 100);
  const auto found = search(one->program, one->mesh, small, one->options());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, DiagCode::M117);
  EXPECT_FALSE(list_candidates(one->program, one->mesh, small, one->options()).ok());
}

TEST(Search, keeps_to_the_numerics_asked_for) {
  for (const CaseText& text :
       {CaseText{"gemm_rs", {"m=2048", "n=2048", "k=2048", "dtype=bf16"}, "tp=4"},
        CaseText{"attention_bwd", {"seq=2048", "heads=4", "dtype=bf16"}, "cp=4"}}) {
    const auto one = make_case(text);
    SearchOptions options = one->options();
    for (const NumericsClass most :
         {NumericsClass::Exact, NumericsClass::Reassociated, NumericsClass::Rounded}) {
      options.numerics = most;
      const Checked<SearchResult> found = search_case(*one, options);
      if (!found.ok()) {
        EXPECT_EQ(found.error().code, DiagCode::S704) << render(found.error());
        continue;
      }
      for (const auto* list : {&found->top, &found->front}) {
        for (const Evaluated& each : *list) {
          EXPECT_LE(numerics_of(one->program, each.form), most) << print(text) << each.label;
        }
      }
    }
  }
  const auto one = make_case({"gemm_rs", {"m=2048", "n=2048", "k=2048", "dtype=bf16"}, "tp=4"});
  EXPECT_EQ(numerics_of(one->program, named_form(*one, "bulk")), NumericsClass::Rounded);
  const auto gather = make_case({"ag_gemm", {"m=2048", "n=2048", "k=2048"}, "tp=4"});
  EXPECT_EQ(numerics_of(gather->program, named_form(*gather, "ring")), NumericsClass::Exact);
}

TEST(Search, starts_from_seeds) {
  const auto one = causal_case();
  SearchOptions options = one->options();
  const SearchResult first = expect_result(*one, options);
  options.seeds = {{first.top.front().label, first.top.front().form}};
  const SearchResult second = expect_result(*one, options);
  EXPECT_EQ(second.top.front().form, first.top.front().form);
  EXPECT_EQ(time_of(first), time_of(second));
  EXPECT_LE(second.estimated, first.estimated);
}

}  // namespace search_test
}  // namespace harpe
