#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "ir/instantiate.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "plan/text.h"
#include "tests/property/verify/mutants.h"
#include "tests/property/verify/routed_forms.h"
#include "tests/support/internal_error.h"
#include "tests/support/replay.h"
#include "verify/verify.h"

// Random forms of programs with routes: every accepted form is proved right and gives the right
// result when it runs.
namespace harpe::test {
namespace {

constexpr int kForms = 3000;
constexpr std::uint64_t kReplayed = 10;  // every kReplayed-th form is also run

struct Tally {
  int accepted = 0;
  int cut = 0;  // with a transfer limited to a digit's value
  std::map<std::string, int> refused;
};

bool is_cut(const Plan& plan) {
  return std::ranges::any_of(plan.tasks, [](const Task& task) {
    return std::ranges::any_of(task.writes, [](const Ref& ref) { return ref.when.has_value(); });
  });
}

std::string text_of(const Example& example) {
  return print(example.program) + print(example.mesh) + print(example.form);
}

void prove(const Example& example, std::mt19937_64& random, Tally& tally) {
  ASSERT_TRUE(check_program(example.program).ok())
      << render(check_program(example.program).error());
  const Checked<Plan> plan = lower(example.program, example.mesh, example.form);
  if (!plan.ok()) {
    ++tally.refused[std::string(info(plan.error().code).name)];
    return;
  }
  ++tally.accepted;
  if (is_cut(*plan)) ++tally.cut;
  const Checked<Certificate> certificate = verify(*plan);
  ASSERT_TRUE(certificate.ok()) << render(certificate.error());
  if (random() % kReplayed != 0) return;
  EXPECT_EQ(replay(*plan, random()).value_or("right"), "right");
  const Checked<Plan> again = parse_plan(print_plan(*plan), "routed.plan");
  ASSERT_TRUE(again.ok()) << render(again.error());
  EXPECT_TRUE(*again == *plan);
}

// HARPE_FUZZ_SEED and HARPE_FUZZ_FORMS in the environment change the seed and the number of forms.
std::uint64_t setting(const char* name, std::uint64_t usual) {
  const char* const text = std::getenv(name);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

TEST(Routed, forms_are_refused_or_proved_right) {
  Tally tally;
  const std::uint64_t forms = setting("HARPE_FUZZ_FORMS", kForms);
  const std::uint64_t seed = setting("HARPE_FUZZ_SEED", 41);
  for (std::uint64_t i = 0; i < forms && !testing::Test::HasFailure(); ++i) {
    std::mt19937_64 random(seed * 1'000'003 + i);
    const Example example = draw_routed_form(random);
    SCOPED_TRACE(std::to_string(i) + "\n" + text_of(example));
    const std::optional<std::string> broken =
        testing_support::internal_error_of([&] { prove(example, random, tally); });
    EXPECT_FALSE(broken) << *broken;
  }
  std::printf("%d accepted, %d of them cut by a digit; refused", tally.accepted, tally.cut);
  for (const auto& [code, count] : tally.refused) std::printf(" %s %d", code.c_str(), count);
  std::printf("\n");
  EXPECT_GE(tally.accepted, static_cast<int>(forms) / 4);
}

// Every fault in a few routed plans is refused, or is harmless in 25 random legal orders.
TEST(Routed, plans_hide_no_fault) {
  constexpr int kPlans = 60;
  constexpr std::uint64_t kOrders = 25;
  int made = 0;
  int equivalent = 0;
  int plans = 0;
  for (std::uint64_t i = 0; plans < kPlans; ++i) {
    std::mt19937_64 random(setting("HARPE_FUZZ_SEED", 43) * 1'000'003 + i);
    const Example example = draw_routed_form(random);
    const Checked<Plan> plan = lower(example.program, example.mesh, example.form);
    if (!plan.ok()) continue;
    ++plans;
    for (const Mutant& mutant : make_mutants(*plan, 2, random)) {
      ++made;
      if (!verify(mutant.plan).ok()) continue;
      ++equivalent;
      for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
        ASSERT_EQ(replay(mutant.plan, seed).value_or("right"), "right")
            << mutant.mutation << " survives\n"
            << text_of(example);
      }
    }
  }
  std::printf("%d faults in %d plans, %d of them none\n", made, plans, equivalent);
  EXPECT_LT(equivalent, made / 10);
}

}  // namespace
}  // namespace harpe::test
