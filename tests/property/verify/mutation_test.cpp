#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "plan/text.h"
#include "tests/property/verify/further_plans.h"
#include "tests/property/verify/mutants.h"
#include "tests/support/example_forms.h"
#include "tests/support/replay.h"
#include "verify/verify.h"

// The verifier finds every fault in a plan: each mutant of each example is refused, or gives the
// right result in every legal order tried.
namespace harpe::test {
namespace {

constexpr std::size_t kPerKind = 8;    // mutants of each kind and example
constexpr std::uint64_t kOrders = 25;  // random legal orders that a surviving mutant must pass
constexpr std::uint64_t kSeed = 1;

const std::vector<Lowered>& lowered_examples() {
  static const std::vector<Lowered> plans = [] {
    std::vector<Lowered> found;
    for (const Example& example : example_forms()) {
      Checked<Plan> plan = lower(example.program, example.mesh, example.form);
      if (plan.ok()) found.push_back({example.form.name, std::move(plan).value()});
    }
    for (Lowered& further : lowered_further()) found.push_back(std::move(further));
    return found;
  }();
  return plans;
}

TEST(Mutation, starts_from_plans_that_verify) {
  EXPECT_EQ(lowered_examples().size(), 39U);
  for (const Lowered& lowered : lowered_examples()) {
    const auto result = verify(lowered.plan);
    EXPECT_TRUE(result.ok()) << lowered.name << ": " << render(result.error());
  }
}

TEST(Mutation, starts_from_plans_that_are_read_back) {
  for (const Lowered& lowered : lowered_examples()) {
    const Checked<Plan> again = parse_plan(print_plan(lowered.plan), "example.plan");
    ASSERT_TRUE(again.ok()) << lowered.name << ": " << render(again.error());
    EXPECT_TRUE(*again == lowered.plan) << lowered.name;
  }
}

TEST(Mutation, starts_from_plans_that_replay) {
  for (const Lowered& lowered : lowered_examples()) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      EXPECT_EQ(replay(lowered.plan, seed).value_or("right"), "right") << lowered.name;
    }
  }
}

// The judge of the surviving mutants detects faults of meaning even in plans with all their order.
TEST(Mutation, is_judged_by_a_replay_that_sees_faults) {
  std::mt19937_64 random(kSeed);
  const Plan& plan = lowered_examples().front().plan;
  int seen = 0;
  for (const Mutant& mutant : make_mutants(plan, 2, random)) {
    const bool meaning = mutant.mutation == "drop-compute" || mutant.mutation == "drop-copy" ||
                         mutant.mutation == "repeat-iteration" ||
                         mutant.mutation == "drop-finalise" || mutant.mutation == "cyclic-wait";
    if (!meaning) continue;
    EXPECT_TRUE(replay(mutant.plan, kSeed).has_value()) << mutant.mutation;
    ++seen;
  }
  EXPECT_EQ(seen, 10);
}

// Copies before and after one stage of lowering `mercury_novel8` with `depth` slots for K and V.
struct Dropped {
  int before = 0;
  int after = 0;
};

Dropped drop_redundant(std::int64_t depth) {
  const auto examples = example_forms();
  const auto example = std::ranges::find(examples, "mercury_novel8",
                                         [](const Example& each) { return each.form.name; });
  NormalForm form = example->form;
  for (NestItem& item : form.nests.front().items) {
    auto* const move = std::get_if<Move>(&item);
    if (move != nullptr && (move->buffer == "K" || move->buffer == "V")) move->depth = depth;
  }
  std::map<std::string, int> copies;
  LowerOptions options;
  options.after_stage = [&](std::string_view stage, const std::function<std::string()>& text,
                            std::chrono::nanoseconds) {
    const std::string draft = text();
    for (std::size_t at = 0; (at = draft.find(" copy ", at)) != std::string::npos; ++at) {
      ++copies[std::string(stage)];
    }
  };
  const Checked<Plan> plan = lower(example->program, example->mesh, form, options);
  EXPECT_TRUE(plan.ok() && verify(*plan).ok());
  return {.before = copies["dead"], .after = copies["redundant"]};
}

// commir.md 10.5: every step of Q sends K and V again although their slots still hold them: 48
// copies. Its 136 copies are 120 here, because o and l share a copy. It also assumes that no blocks
// share a slot; with depth 4 none do, and all 48 are dropped.
TEST(Redundant, transfers_of_a_published_schedule_are_dropped) {
  const Dropped roomy = drop_redundant(4);
  EXPECT_EQ(roomy.before, 136 - 16);
  EXPECT_EQ(roomy.before - roomy.after, 48);
  const Dropped published = drop_redundant(2);
  EXPECT_EQ(published.before - published.after, 16);
}

bool is_right_in_every_order(const Plan& plan) {
  for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
    if (replay(plan, seed)) return false;
  }
  return true;
}

TEST(Mutation, leaves_no_fault_unseen) {
  struct Count {
    int made = 0;
    int caught = 0;
    int equivalent = 0;
    std::map<std::string, int> codes;
  };
  std::map<std::string, Count> counts;
  std::mt19937_64 random(kSeed);
  for (const Lowered& lowered : lowered_examples()) {
    for (const Mutant& mutant : make_mutants(lowered.plan, kPerKind, random)) {
      Count& count = counts[mutant.mutation];
      ++count.made;
      const auto result = verify(mutant.plan);
      if (!result.ok()) {
        ++count.caught;
        ++count.codes[std::string(info(result.error().code).name)];
        continue;
      }
      const bool equivalent = is_right_in_every_order(mutant.plan);
      EXPECT_TRUE(equivalent) << mutant.mutation << " in " << lowered.name << " survives";
      if (equivalent) ++count.equivalent;
    }
  }
  std::printf("%-24s %7s %7s %11s  %s\n", "mutation", "made", "caught", "equivalent", "by");
  for (const auto& [mutation, count] : counts) {
    std::string codes;
    for (const auto& [code, times] : count.codes) codes += code + ":" + std::to_string(times) + " ";
    std::printf("%-24s %7d %7d %11d  %s\n", mutation.c_str(), count.made, count.caught,
                count.equivalent, codes.c_str());
  }
  EXPECT_EQ(counts.size(), 29U);
}

}  // namespace
}  // namespace harpe::test
