#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "exec/cpu/cpu_executor.h"
#include "run/run.h"
#include "tests/property/launches/described.h"
#include "tests/property/launches/launch_mutants.h"
#include "tests/support/internal_error.h"
#include "tests/support/linear.h"
#include "verify/verify_launches.h"

// Executes faulty launch plans without the proof. Wrong numbers or executions that never end show
// what each rule of the passes must keep.
namespace harpe::test {
namespace {

using Bits = std::vector<std::byte>;

struct Question {
  std::string op;
  std::vector<std::string> parameters;
  std::string mesh;
  std::string schedule;
};

// A GEMM with a bias and a gelu behind it instead of an operator: fuse_maps.
constexpr const char* kLinear = "linear";

Described launches_of(const Question& question) {
  if (question.op != kLinear) {
    return describe(question.op, question.parameters, question.mesh, question.schedule);
  }
  return describe(
      ask({.op = question.parameters[0], .schedule = question.schedule, .m = 96, .n = 48, .k = 96},
          question.mesh));
}

const std::vector<Question>& questions() {
  static const std::vector<std::string> kRows = {"m=96", "n=48", "k=96"};
  static const std::vector<std::string> kHeads = {"seq=128", "heads=4", "kv_heads=4",
                                                  "head_dim=64"};
  static const std::vector<std::string> kExperts = {"tokens=32", "experts=4", "topk=2", "hidden=64",
                                                    "inter=64"};
  static const std::vector<Question> kQuestions = {
      {"ag_gemm", kRows, "tp=2", "push"},    // join_panels, read_in_place, store_at_home
      {"ag_gemm", kRows, "tp=2", "push_k"},  // panels of several chunks of K
      {"ag_gemm", kRows, "tp=3", "fused"},   // fuse_copies
      {"ag_gemm", kRows, "tp=3", "ring"},
      {"gemm_rs", kRows, "tp=3", "push"},   // store_at_peers, add_at_home
      {"gemm_rs", kRows, "tp=2", "bulk"},   // pulls
      {"gemm_rs", kRows, "tp=2", "fetch"},  // partials16
      {"gemm_ar", kRows, "tp=3", "push"},
      {"gemm_ar", kRows, "tp=3", "push_n"},          // panels of all rows, each with its own B
      {"gemm_ar", kRows, "tp=3", "one_shot"},        // every peer stores sums; each rank adds them
      {"gemm_ar_norm", kRows, "tp=2", "scattered"},  // rows normalised between two exchanges
      {"attention", kHeads, "cp=2", "push"},
      {"attention", kHeads, "cp=2", "ring"},  // state carried from step to step
      {"attention_bwd", kHeads, "cp=2", "ring"},
      {"decode", {"batch=2", "kv=128", "heads=4", "kv_heads=4", "head_dim=64"}, "tp=2", "push"},
      {"moe", kExperts, "ep=2", "push"},  // batch_rows
      {kLinear, {"ag_gemm"}, "tp=2", "push"},
      {kLinear, {"gemm_rs"}, "tp=3", "push"},
  };
  return kQuestions;
}

// The result of one interleaving of a launch plan: bits, or in `how` why there are none.
struct Outcome {
  std::string how;
  Bits bits;
  friend auto operator<=>(const Outcome&, const Outcome&) = default;
};

// Chooses the queue of the next step. Queues are in the order of their ranks, so some orders let
// the first or the last ranks run ahead as far as possible.
class Order {
 public:
  explicit Order(std::uint64_t seed) : seed_(seed), random_(seed) {}

  std::size_t choose(std::size_t ready) {
    if (seed_ == 0) return 0;
    if (seed_ == 1) return ready - 1;
    const auto draw = [&] { return static_cast<std::size_t>(random_() % ready); };
    const std::size_t one = draw();
    const std::size_t other = draw();
    if (seed_ % 3 == 0) return one;
    return seed_ % 3 == 1 ? std::min(one, other) : std::max(one, other);
  }

 private:
  std::uint64_t seed_;
  std::mt19937_64 random_;
};

Outcome run_stepwise(const Plan& plan, const launch::LaunchPlan& launches, const TensorMap& inputs,
                     Order& order) {
  CpuOptions options;
  options.runner = QueueRunner::Stepper;
  options.products = Products::OwnLoops;
  options.clears_slots = true;
  options.choose = [&](std::size_t ready) { return order.choose(ready); };
  Checked<std::unique_ptr<Executor>> made = make_cpu_executor(plan, launches, options);
  if (!made.ok()) return {.how = "refused", .bits = {}};
  for (const auto& [name, tensor] : inputs) (void)(*made)->set_input(name, tensor).value();
  if (!(*made)->run({.iterations = 2}).ok()) return {.how = "stuck", .bits = {}};
  Outcome outcome;
  for (const Buffer* buffer : buffers_of(plan.program)) {
    if (buffer->role != Role::Out) continue;
    const Checked<HostTensor> tensor = (*made)->output(buffer->name);
    if (!tensor.ok()) return {.how = "replicas differ", .bits = {}};
    outcome.bits.insert(outcome.bits.end(), tensor->data.begin(), tensor->data.end());
  }
  return outcome;
}

Outcome execute(const Plan& plan, const launch::LaunchPlan& launches, const TensorMap& inputs,
                std::uint64_t seed) {
  Order order(seed);
  Outcome outcome;
  const auto impossible = testing_support::internal_error_of(
      [&] { outcome = run_stepwise(plan, launches, inputs, order); });
  return impossible ? Outcome{.how = "impossible", .bits = {}} : outcome;
}

// Faults in what is read, computed, stored or signalled: any execution shows them.
const std::set<std::string>& seen_in_any_execution() {
  static const std::set<std::string> kSeen = {"drop a panel",
                                              "drop a meeting",
                                              "meet twice",
                                              "store a panel where another is",
                                              "read an operand of another rank",
                                              "read an operand of a neighbour",
                                              "read another arrival's operand",
                                              "drop a fused copy",
                                              "copy in silence",
                                              "copy to another rank",
                                              "copy to a neighbour",
                                              "store at another rank",
                                              "store at a neighbour",
                                              "drop an addend",
                                              "add an addend twice",
                                              "take an addend from another rank",
                                              "take an addend from a neighbour",
                                              "skip a launch",
                                              "drop a launch's kernels",
                                              "go on from nothing",
                                              "narrow a state",
                                              "leave a narrow state wide",
                                              "store in another type",
                                              "drop a map",
                                              "apply a map twice",
                                              "take a map's operand from a neighbour",
                                              "drop a map's operand",
                                              "store what a map is applied to",
                                              "never raise a signal",
                                              "store without a signal"};
  return kSeen;
}

// Faults in what waits for what: some interleaving shows more than half of them. Here the panels of
// a launch run in order, so a wait that is too weak stays unseen behind a panel with a stronger
// wait.
const std::set<std::string>& seen_in_some_interleaving() {
  static const std::set<std::string> kSeen = {"drop a wait",
                                              "drop a wait inside",
                                              "drop the wait for an addend",
                                              "drop the wait for a credit",
                                              "drop the wait for members",
                                              "drop the wait for readers",
                                              "drop an event",
                                              "raise early a signal",
                                              "raise early a credit",
                                              "raise one panel early",
                                              "swap neighbours of a queue"};
  return kSeen;
}

constexpr std::size_t kPerKind = 2;
constexpr std::uint64_t kInterleavings = 40;

struct Count {
  bool is_of_order = false;
  int made = 0;  // mutants that the proof refuses
  int seen = 0;
};

class Hunt {
 public:
  std::map<std::string, Count> counts;

  void run(const Question& question) {
    const Described base = launches_of(question);
    ASSERT_EQ(finding(base), "verified");
    const Checked<TensorMap> inputs = prepare_run(base.plan, {.seed = 3});
    ASSERT_TRUE(inputs.ok()) << render(inputs.error());
    const Outcome right = execute(base.plan, base.launches, *inputs, 0);
    ASSERT_EQ(right.how, "");
    for (std::uint64_t seed = 1; seed < kInterleavings; ++seed) {
      ASSERT_EQ(execute(base.plan, base.launches, *inputs, seed), right);
    }
    for (const LaunchMutant& mutant : make_launch_mutants(base.plan, base.launches, kPerKind)) {
      if (verify_launches(base.plan, mutant.launches).ok()) continue;
      Count& count = counts[mutant.mutation];
      count.is_of_order = mutant.is_of_order;
      ++count.made;
      const std::uint64_t most = mutant.is_of_order ? kInterleavings : 1;
      bool is_seen = false;
      for (std::uint64_t seed = 0; !is_seen && seed < most; ++seed) {
        is_seen = execute(base.plan, mutant.launches, *inputs, seed) != right;
      }
      count.seen += is_seen ? 1 : 0;
      EXPECT_TRUE(is_seen || !seen_in_any_execution().contains(mutant.mutation))
          << mutant.mutation << " in " << question.op << " " << question.mesh << " "
          << question.schedule;
    }
  }
};

TEST(LaunchFaults, show_when_they_are_executed) {
  Hunt hunt;
  for (const Question& question : questions()) {
    SCOPED_TRACE(question.op + " " + question.schedule + " " + question.mesh);
    hunt.run(question);
  }
  for (const std::string& kind : seen_in_any_execution()) {
    EXPECT_GT(hunt.counts[kind].made, 0) << kind;
  }
  for (const std::string& kind : seen_in_some_interleaving()) {
    EXPECT_GT(2 * hunt.counts[kind].seen, hunt.counts[kind].made) << kind;
  }
  for (const auto& [mutation, count] : hunt.counts) {
    std::printf("%-48s %3d made, %3d seen%s\n", mutation.c_str(), count.made, count.seen,
                count.is_of_order ? " in some interleaving" : "");
  }
}

}  // namespace
}  // namespace harpe::test
