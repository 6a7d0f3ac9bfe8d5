#include "search/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lower/lower.h"
#include "search/canonical.h"
#include "tests/unit/search/cases.h"
#include "verify/verify.h"

namespace harpe {
namespace space_test {

const std::vector<std::string> kHeads = {"seq=16", "heads=4", "head_dim=4", "dtype=f32"};
const std::vector<std::string> kGrouped = {"seq=16",     "heads=4",   "kv_heads=2",
                                           "head_dim=4", "dtype=f32", "causal=true"};
const std::vector<std::string> kProduct = {"m=16", "n=16", "k=16"};

// 2, 4, 6 and 8 ranks, meshes of two axes, both contracts.
std::vector<CaseText> all_cases() {
  const std::string two = "h200x8";
  return {{"attention", kHeads, "cp=2", two},
          {"attention", kHeads, "cp=6", two},
          {"attention", kGrouped, "cp=4", two},
          {"attention", kHeads, "node=2,gpu=2", two},
          {"attention", kHeads, "node=2,gpu=4", two, Contract::Standard, 0},
          {"attention", kHeads, "cp=4", two, Contract::Free, 0},
          {"attention_bwd", kHeads, "cp=2", two},
          {"attention_bwd", kHeads, "cp=8", two, Contract::Standard, 0},
          {"ag_gemm", kProduct, "tp=8", two},
          {"gemm_rs", kProduct, "tp=6", two},
          {"gemm_ar", kProduct, "node=2,gpu=2", two},
          {"gemm", kProduct, "tp=4", two, Contract::Free, 0},
          {"decode", {"kv=32", "heads=4", "head_dim=4"}, "tp=4", two}};
}

TEST(Space, holds_no_schedule_twice) {
  for (const CaseText& text : all_cases()) {
    const auto one = make_case(text);
    std::set<std::string> texts;
    std::int64_t all = 0;
    for (const Candidate& candidate : candidates_of(*one)) {
      ++all;
      const NormalForm form = form_of(one->problem, one->machine, candidate);
      EXPECT_TRUE(texts.insert(canonical_text(one->program, form)).second)
          << print(text) << ": " << describe(one->problem, candidate);
    }
    EXPECT_GT(all, 10) << print(text);
    std::printf("%s: %lld candidates\n", print(text).c_str(), static_cast<long long>(all));
  }
}

TEST(Space, counts_what_it_enumerates) {
  for (const CaseText& text : all_cases()) {
    const auto one = make_case(text);
    const SpaceOptions options{.contract = text.contract, .cuts = text.cuts};
    for (const Candidate& skeleton : enumerate_skeletons(one->problem, options)) {
      std::int64_t variants = 0;
      for_each_variant(one->problem, skeleton, [&](const Candidate&) { ++variants; });
      ASSERT_EQ(count_variants(one->problem, skeleton), variants)
          << print(text) << ": " << describe(one->problem, skeleton);
    }
  }
}

// Counts refusals by code; only the walk over ranks and steps may refuse a candidate.
TEST(Space, is_lowered_and_proved_but_for_few) {
  const std::set<DiagCode> known = {DiagCode::F211, DiagCode::F212};
  std::int64_t all = 0;
  std::map<DiagCode, std::int64_t> refused;
  for (const CaseText& text : all_cases()) {
    const auto one = make_case(text);
    std::int64_t index = 0;
    for (const Candidate& candidate : candidates_of(*one)) {
      if (index++ % 7 != 0) continue;  // harpe tune --verify-all executes every one
      ++all;
      const NormalForm form = form_of(one->problem, one->machine, candidate);
      const Checked<Plan> plan = lower(one->program, one->mesh, form);
      if (!plan.ok()) {
        ++refused[plan.error().code];
        EXPECT_TRUE(known.contains(plan.error().code))
            << print(text) << ": " << describe(one->problem, candidate) << ": "
            << render(plan.error());
        continue;
      }
      const Checked<Certificate> proved = verify(*plan);
      ASSERT_TRUE(proved.ok()) << print(text) << ": " << describe(one->problem, candidate) << ": "
                               << (proved.ok() ? "" : render(proved.error()));
    }
  }
  std::int64_t none = 0;
  for (const auto& [code, count] : refused) none += count;
  std::printf("%lld candidates, %lld refused\n", static_cast<long long>(all),
              static_cast<long long>(none));
  EXPECT_GT(all, 1000);
  EXPECT_LT(none, all / 20);
}

TEST(Space, is_left_neither_by_neighbours_nor_by_the_usual_variant) {
  for (const CaseText& text : all_cases()) {
    const auto one = make_case(text);
    const SpaceOptions options{.contract = text.contract, .cuts = text.cuts};
    std::int64_t index = 0;
    for (const Candidate& skeleton : enumerate_skeletons(one->problem, options)) {
      if (index++ % 5 != 0) continue;
      std::vector<Candidate> variants;
      for_each_variant(one->problem, skeleton,
                       [&](const Candidate& each) { variants.push_back(each); });
      if (variants.empty() || variants.size() > 500) continue;
      const Candidate usual = usual_variants(one->problem, skeleton)[0];
      EXPECT_TRUE(std::ranges::find(variants, usual) != variants.end()) << print(text);
      for (const Candidate& other : neighbours_of(one->problem, usual)) {
        EXPECT_FALSE(other == usual);
        EXPECT_TRUE(std::ranges::find(variants, other) != variants.end()) << print(text);
      }
    }
  }
}

TEST(Space, is_refined_by_plans_that_are_right) {
  for (const CaseText& text :
       {CaseText{"attention", kGrouped, "cp=4"}, CaseText{"gemm_rs", kProduct, "tp=4"},
        CaseText{"attention_bwd", kHeads, "cp=4", "h200x8", Contract::Standard, 0}}) {
    const auto one = make_case(text);
    const std::vector<Candidate> all = candidates_of(*one);
    const std::size_t step = 1 + all.size() / 60;
    std::int64_t checked = 0;
    for (std::size_t i = 0; i < all.size(); i += step) {
      const Candidate& candidate = all[i];
      const NormalForm before = form_of(one->problem, one->machine, candidate);
      if (!lower(one->program, one->mesh, before).ok()) continue;
      for (const Candidate& changed : refinements_of(one->problem, one->machine, candidate)) {
        const NormalForm form = form_of(one->problem, one->machine, changed);
        EXPECT_NE(canonical_text(one->program, form), canonical_text(one->program, before));
        const Checked<Plan> plan = lower(one->program, one->mesh, form);
        ASSERT_TRUE(plan.ok()) << describe(one->problem, changed) << render(plan.error());
        const Checked<Certificate> proved = verify(*plan);
        ASSERT_TRUE(proved.ok()) << describe(one->problem, changed) << render(proved.error());
        ++checked;
      }
    }
    EXPECT_GT(checked, 10) << print(text);
  }
}

}  // namespace space_test
}  // namespace harpe
