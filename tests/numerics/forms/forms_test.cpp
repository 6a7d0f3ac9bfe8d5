#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <string>

#include "exec/cpu/cpu_executor.h"
#include "ir/program_check.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "run/check.h"
#include "run/run.h"
#include "tests/property/lower/oracle.h"
#include "tests/support/internal_error.h"
#include "verify/verify.h"

// Every accepted random form runs on CPU ranks with the right result. An accepted and proved plan
// with a wrong result would be a fault of the executor or of the proof itself.
namespace harpe {
namespace {

using oracle::Record;
using Random = std::mt19937_64;

// Sizes around the number of blocks, so that some blocks are uneven and some are empty.
Program make_small(Program program, Random& random) {
  const std::set<std::string> split = {"M", "N", "K", "Sq", "Skv"};
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const bool single = random() % 2 == 0;
  for (Decl& decl : program.decls) {
    if (auto* const axis = std::get_if<Axis>(&decl)) {
      axis->size = Poly{.first = split.contains(axis->name) ? draw(1, 40) : draw(1, 5), .rest = {}};
      axis->align = std::int64_t{1} << draw(0, 3);
    } else if (auto* const buffer = std::get_if<Buffer>(&decl)) {
      if (single && buffer->dtype == DType::BF16) buffer->dtype = DType::F32;
    }
  }
  return program;
}

class Tally {
 public:
  explicit Tally(std::uint64_t seed) : random_(seed) {}

  void run(const Record& record) {
    const Program program = make_small(oracle::parse_program_text(record.program), random_);
    const Mesh mesh = oracle::parse_mesh_text(record.mesh);
    NormalForm form = oracle::parse_form_text(record.form);
    oracle::make_capable(form);
    const std::string what = print(program) + print(mesh) + print(form);
    if (!texts_.insert(what).second) return;
    const Checked<Plan> plan = lower(program, mesh, form);
    if (!plan.ok()) {
      ++refused_;
      return;
    }
    const Checked<Certificate> certificate = verify(*plan);
    ASSERT_TRUE(certificate.ok()) << render(certificate.error()) << "\n" << what;
    const std::optional<std::string> broken =
        testing_support::internal_error_of([&] { execute(*plan, what); });
    ASSERT_FALSE(broken) << *broken << "\n" << what;
    ++right_[program.name];
  }

  [[nodiscard]] int report() const {
    int right = 0;
    std::printf("%d refused, wrong 0, right", refused_);
    for (const auto& [program, count] : right_) {
      std::printf(" %s %d", program.c_str(), count);
      right += count;
    }
    std::printf(": %d distinct schedules; launches of GPUs %d right", right, launched_);
    for (const auto& [code, count] : unlaunched_) std::printf(", %s %d", code.c_str(), count);
    std::printf("\n");
    EXPECT_TRUE(launched_ > 1000 || unlaunched_.contains("G001"));
    return right;
  }

 private:
  void execute(const Plan& plan, const std::string& what) {
    RunRequest request;
    request.seed = random_();
    request.check = true;
    const Checked<TensorMap> inputs = prepare_run(plan, request);
    ASSERT_TRUE(inputs.ok()) << render(inputs.error()) << "\n" << what;
    const Checked<RunOutcome> outcome = harpe::run(plan, request, *inputs);
    ASSERT_TRUE(outcome.ok()) << render(outcome.error()) << "\n" << what;
    ASSERT_FALSE(outcome->fault) << what;
    ASSERT_TRUE(outcome->check.has_value());
    ASSERT_TRUE(outcome->check->passed()) << render(failure_of(*outcome->check)) << "\n" << what;
    if (texts_.size() % kLaunched == 0) execute_launches(plan, request, *inputs, what);
  }

  // Executes the plan's GPU launches on CPU ranks, if this build makes and proves them.
  void execute_launches(const Plan& plan, RunRequest request, const TensorMap& inputs,
                        const std::string& what) {
    request.backend.target = Backend::Cuda;
    const Checked<RunOutcome> outcome = harpe::run(plan, request, inputs);
    if (!outcome.ok()) {
      ++unlaunched_[std::string(info(outcome.error().code).name)];
      return;
    }
    ++launched_;
    ASSERT_FALSE(outcome->fault) << what;
    ASSERT_TRUE(outcome->check->passed()) << render(failure_of(*outcome->check)) << "\n" << what;
  }

  static constexpr std::size_t kLaunched = 4;  // one in so many schedules

  Random random_;
  std::set<std::string> texts_;
  std::map<std::string, int> right_;
  int refused_ = 0;
  int launched_ = 0;
  std::map<std::string, int> unlaunched_;  // by the refusal's code
};

TEST(Forms, that_are_accepted_run_with_the_right_result) {
  Tally tally(5);
  for (const Record& record : oracle::read_records("--texts --tied 7400 --seed 5")) {
    tally.run(record);
    if (testing::Test::HasFatalFailure()) break;
  }
  EXPECT_GE(tally.report(), 5000);
}

}  // namespace
}  // namespace harpe
