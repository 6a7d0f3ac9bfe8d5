// Printed launch plans parse back to equal values, for arbitrary launches and plans.

#include "plan/launch_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/instantiate.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "plan/text.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"
#include "tests/property/plan/random_launches.h"

namespace harpe {
namespace {

struct Subject {
  std::string op;
  std::string schedule;
  Bindings bindings;
  Mesh mesh;
};

// One plan per family, with and without collectives, barriers and puts.
std::vector<Subject> subjects() {
  const Mesh two{"two", {{"tp", 2}}};
  const Mesh four{"four", {{"tp", 4}}};
  const Mesh nodes{"nodes", {{"node", 2}, {"gpu", 2}}};
  const Bindings gemm = {{"m", 64}, {"n", 48}, {"k", 32}};
  const Bindings attention = {{"batch", 1},    {"seq", 64},     {"heads", 4},
                              {"kv_heads", 4}, {"head_dim", 8}, {"causal", Name{"true"}}};
  const Bindings decode = {{"batch", 2}, {"kv", 32}, {"heads", 4}, {"kv_heads", 4}};
  const Bindings moe = {{"tokens", 16}, {"hidden", 8}, {"experts", 4}, {"topk", 2}, {"inter", 8}};
  return {{"ag_gemm", "push", gemm, two},
          {"ag_gemm", "bulk", gemm, four},
          {"gemm_rs", "push", gemm, four},
          {"gemm_ar", "bulk", gemm, two},
          {"gemm_ar_norm", "one_shot", gemm, two},
          {"ag_gemm", "hierarchical", gemm, nodes},
          {"attention", "zigzag_ring", attention, two},
          {"attention_bwd", "ring", attention, two},
          {"decode", "bulk", decode, two},
          {"moe", "push", moe, two}};
}

Plan lowered(const Subject& subject) {
  const Operator* const op = find_operator(subject.op);
  HP_CHECK(op != nullptr, "no operator " + subject.op);
  const Checked<Program> program = instantiate(template_of(*op), subject.bindings);
  HP_CHECK(program.ok(), render(program.error()));
  const Checked<Script> script =
      generate_schedule(subject.op, subject.schedule, *program, subject.mesh);
  HP_CHECK(script.ok(), render(script.error()));
  const Checked<NormalForm> form = replay(*program, subject.mesh, *script);
  HP_CHECK(form.ok(), render(form.error()));
  Checked<Plan> plan = lower(*program, subject.mesh, *form);
  HP_CHECK(plan.ok(), render(plan.error()));
  return std::move(plan).value();
}

Blocks blocks_of(const Plan& plan) {
  return Blocks::make(plan.program, plan.mesh, plan.form).value();
}

TEST(LaunchTextLaw, what_is_printed_reads_back) {
  constexpr std::uint64_t kEach = 40;
  for (const Subject& subject : subjects()) {
    const Plan plan = lowered(subject);
    const Blocks blocks = blocks_of(plan);
    for (std::uint64_t seed = 0; seed < kEach; ++seed) {
      SCOPED_TRACE(subject.op + " " + subject.schedule + ", seed " + std::to_string(seed));
      const launch::LaunchPlan launches = launch::test::random_launches(plan, seed);
      const std::string text = launch::print_launches(plan, blocks, launches);
      const Checked<launch::LaunchPlan> back = launch::parse_launches(text, "l", plan, blocks);
      ASSERT_TRUE(back.ok()) << render(back.error()) << "\n" << text;
      EXPECT_TRUE(*back == launches) << text;
      EXPECT_EQ(launch::print_launches(plan, blocks, *back), text);
    }
  }
}

// Dropping any word changes the launch plan or makes it unreadable: every word carries meaning.
TEST(LaunchTextLaw, every_word_counts) {
  const Plan plan = lowered(subjects().front());
  const Blocks blocks = blocks_of(plan);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const launch::LaunchPlan launches = launch::test::random_launches(plan, seed);
    const std::string text = launch::print_launches(plan, blocks, launches);
    for (std::size_t begin = 0; begin < text.size(); ++begin) {
      const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
      if (end > begin) {
        std::string without = text;
        without.erase(begin, end - begin);
        const Checked<launch::LaunchPlan> back = launch::parse_launches(without, "l", plan, blocks);
        EXPECT_FALSE(back.ok() && *back == launches) << without.substr(begin, 40);
      }
      begin = end;
    }
  }
}

}  // namespace
}  // namespace harpe
