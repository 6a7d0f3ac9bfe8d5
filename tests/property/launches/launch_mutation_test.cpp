#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/property/launches/described.h"
#include "tests/property/launches/launch_facts.h"
#include "tests/property/launches/launch_mutants.h"
#include "tests/property/launches/step_judge.h"
#include "tests/support/linear.h"
#include "verify/verify_launches.h"

// The verifier finds every fault in a launch plan: each mutant is refused, or keeps all conflicting
// steps ordered alike, or reads an input from another rank's replica.
namespace harpe::test {
namespace {

constexpr int kLeast = 25;  // mutants of a family

struct Question {
  std::vector<std::string> parameters;
  std::string mesh;
  std::string schedule;
  bool is_in_data = false;  // carries all suitable signals in data
};

struct Family {
  std::string op;
  std::vector<Question> questions;
};

// An operator's GEMM followed by a bias and a gelu.
constexpr const char* kLinear = "linear";

Described words_of(const Family& family, const Question& question) {
  if (family.op != kLinear) {
    return describe(family.op, question.parameters, question.mesh, question.schedule);
  }
  const std::string& state = question.parameters[1];
  return describe(ask({.op = question.parameters[0], .schedule = question.schedule, .state = state},
                      question.mesh));
}

Described launches_of(const Family& family, const Question& question) {
  Described described = words_of(family, question);
  if (question.is_in_data) carry_in_data(described.launches);
  return described;
}

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {"ag_gemm",
       {{{}, "tp=2", "push"},
        {{}, "tp=2", "push_k"},
        {{}, "tp=2", "fused"},
        {{}, "tp=3", "bulk"},
        {{}, "tp=3", "ring"}}},
      {"gemm_rs",
       {{{}, "tp=3", "push"},
        {{}, "tp=3", "push", true},
        {{"m=2048", "n=2048"}, "tp=2", "push"},  // two bands
        {{}, "tp=2", "bulk"},
        {{}, "tp=3", "ring"}}},
      {"gemm_ar",
       {{{}, "tp=3", "push"},
        {{}, "tp=3", "push_n"},
        {{"m=2048", "n=2048"}, "tp=2", "push_n"},  // two bands
        {{}, "tp=2", "bulk"},
        {{}, "tp=3", "fetch"},
        {{"m=8"}, "tp=3", "one_shot"},
        {{"m=8"}, "tp=3", "one_shot", true},
        {{"m=300", "n=256", "k=384"}, "tp=3", "one_shot", true}}},
      {"gemm_ar_norm",
       {{{"m=8"}, "tp=3", "one_shot"},
        {{"m=8"}, "tp=2", "one_shot", true},
        {{}, "tp=2", "scattered"}}},
      {"attention",
       {{{}, "cp=2", "push"},
        {{}, "cp=3", "ring"},
        {{}, "cp=3", "ulysses"},
        {{"seq=1024", "causal=true"}, "cp=2", "zigzag_ring"}}},
      {"attention_bwd", {{{}, "cp=2", "ring"}, {{}, "cp=2", "ulysses"}, {{}, "cp=2", "hybrid"}}},
      {"decode",
       {{{}, "tp=2", "bulk"},
        {{}, "cp=2", "bulk", true},
        {{}, "tp=3", "push"},
        {{}, "tp=2", "ring"},
        {{"ragged=true", "page=16"}, "tp=2", "push"}}},
      {"gemm", {{{"m=64", "n=48", "k=96"}, "x=4", "hierarchical"}}},  // rests by plain kernels
      {"moe", {{{}, "ep=2", "push"}, {{}, "ep=2", "bulk"}, {{}, "ep=2", "hierarchical"}}},
      {kLinear,
       {{{"ag_gemm", "f32"}, "tp=2", "push"},
        {{"ag_gemm", "bf16"}, "tp=3", "bulk"},
        {{"gemm_rs", "f32"}, "tp=3", "push"}}},
  };
  return kFamilies;
}

TEST(LaunchMutation, starts_from_launch_plans_that_verify) {
  for (const Family& family : families()) {
    for (const Question& each : family.questions) {
      EXPECT_EQ(finding(launches_of(family, each)), "verified")
          << family.op << " " << each.mesh << " " << each.schedule;
    }
  }
}

// The judge of the mutants that survive detects a lost order.
TEST(LaunchMutation, is_judged_by_a_closure_that_sees_lost_orders) {
  const Described base = describe("ag_gemm", {}, "tp=2", "push");
  EXPECT_TRUE(orders_alike(base.plan, base.launches, base.launches));
  int seen = 0;
  for (const LaunchMutant& mutant : make_launch_mutants(base.plan, base.launches)) {
    if (mutant.mutation != "drop a wait inside") continue;
    EXPECT_FALSE(orders_alike(base.plan, base.launches, mutant.launches));
    ++seen;
  }
  EXPECT_GT(seen, 0);
}

TEST(LaunchMutation, leaves_no_fault_unseen) {
  struct Count {
    int made = 0;
    int caught = 0;
    std::map<std::string, int> codes;
  };
  std::map<std::string, Count> counts;
  for (const Family& family : families()) {
    int made = 0;
    for (const Question& each : family.questions) {
      const Described base = launches_of(family, each);
      for (const LaunchMutant& mutant : make_launch_mutants(base.plan, base.launches)) {
        Count& count = counts[mutant.mutation];
        ++made;
        ++count.made;
        const auto result = verify_launches(base.plan, mutant.launches);
        if (!result.ok()) {
          ++count.caught;
          ++count.codes[std::string(info(result.error().code).name)];
          continue;
        }
        const bool is_alike = mutant.is_of_order
                                  ? orders_alike(base.plan, base.launches, mutant.launches)
                                  : reads_replicas(base.plan, base.launches, mutant.launches);
        EXPECT_TRUE(is_alike) << mutant.mutation << " in " << family.op << " " << each.mesh << " "
                              << each.schedule << " survives";
      }
    }
    EXPECT_GE(made, kLeast) << family.op;
  }
  for (const auto& [mutation, count] : counts) {
    std::printf("%-46s %4d made, %4d refused:", mutation.c_str(), count.made, count.caught);
    for (const auto& [code, times] : count.codes) std::printf(" %s %d", code.c_str(), times);
    std::printf("\n");
    // Every kind produces a real fault in some plan.
    EXPECT_GT(count.caught, 0) << mutation;
  }
}

}  // namespace
}  // namespace harpe::test
