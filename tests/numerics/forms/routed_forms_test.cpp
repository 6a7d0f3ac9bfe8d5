#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "ir/instantiate.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "run/run.h"
#include "tests/property/verify/routed_forms.h"
#include "tests/support/internal_error.h"
#include "verify/verify.h"

// Random forms of a layer of experts: every plan that is accepted, proved and supported by the
// executor gives the right result, for any senders and any number of repeated transfers.
namespace harpe::test {
namespace {

constexpr int kForms = 1600;
constexpr int kLeast = 400;  // executed forms, at least

struct Tally {
  int right = 0;
  int launched = 0;  // with the launches of GPUs
  std::map<std::string, int> refused;
  std::map<std::string, int> unlaunched;  // by the refusal's code
};

void count(const Diag& refusal, Tally& tally) {
  ++tally.refused[std::string(info(refusal.code).name)];
}

void execute(const Example& example, std::uint64_t seed, Tally& tally) {
  ASSERT_TRUE(check_program(example.program).ok())
      << render(check_program(example.program).error());
  const Checked<Plan> plan = lower(example.program, example.mesh, example.form);
  if (!plan.ok()) return count(plan.error(), tally);
  const Checked<Certificate> certificate = verify(*plan);
  ASSERT_TRUE(certificate.ok()) << render(certificate.error());
  RunRequest request;
  request.seed = seed;
  request.check = true;
  const Checked<TensorMap> inputs = prepare_run(*plan, request);
  ASSERT_TRUE(inputs.ok()) << render(inputs.error());
  const Checked<RunOutcome> outcome = harpe::run(*plan, request, *inputs);
  if (!outcome.ok()) {
    // The executor may lack a feature; a proved plan may not be refused as wrong.
    ASSERT_EQ(info(outcome.error().code).verdict, Verdict::Unsupported) << render(outcome.error());
    return count(outcome.error(), tally);
  }
  ASSERT_FALSE(outcome->fault);
  ASSERT_TRUE(outcome->check->passed()) << render(failure_of(*outcome->check));
  ++tally.right;
  request.backend.target = Backend::Cuda;
  const Checked<RunOutcome> launched = harpe::run(*plan, request, *inputs);
  if (!launched.ok()) {
    ++tally.unlaunched[std::string(info(launched.error().code).name)];
    return;
  }
  ASSERT_FALSE(launched->fault);
  ASSERT_TRUE(launched->check->passed()) << render(failure_of(*launched->check));
  ++tally.launched;
}

// HARPE_FUZZ_SEED in the environment replaces the fixed seed.
std::uint64_t seed() {
  const char* const text = std::getenv("HARPE_FUZZ_SEED");
  return text == nullptr ? 77 : std::strtoull(text, nullptr, 10);
}

TEST(RoutedForms, that_are_accepted_run_with_the_right_result) {
  Tally tally;
  for (std::uint64_t i = 0; i < kForms && !testing::Test::HasFailure(); ++i) {
    std::mt19937_64 random(seed() * 1'000'003 + i);
    const Example example = draw_expert_form(random);
    SCOPED_TRACE(std::to_string(i) + "\n" + print(example.program) + print(example.mesh) +
                 print(example.form));
    const std::optional<std::string> broken =
        testing_support::internal_error_of([&] { execute(example, random(), tally); });
    EXPECT_FALSE(broken) << *broken;
  }
  std::printf("%d right, wrong 0; refused", tally.right);
  for (const auto& [code, times] : tally.refused) std::printf(" %s %d", code.c_str(), times);
  std::printf("; launches of GPUs %d right", tally.launched);
  for (const auto& [code, times] : tally.unlaunched) std::printf(", %s %d", code.c_str(), times);
  std::printf("\n");
  EXPECT_GE(tally.right, kLeast);
  EXPECT_TRUE(tally.launched > 200 || tally.unlaunched.contains("G001"));
}

}  // namespace
}  // namespace harpe::test
