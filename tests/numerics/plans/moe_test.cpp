// Mixture-of-experts layers of published models with all their experts, but with hidden and inner
// sizes divided by 16. Loads leave experts empty or make one hot. Every schedule is compared with
// the f64 meaning of the program.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "compile/session.h"
#include "exec/cpu/cpu_executor.h"
#include "run/check.h"
#include "run/run.h"
#include "schedule/named/registry.h"

namespace harpe {
namespace {

struct Layer {
  const char* name;
  std::vector<std::string> parameters;
};

const std::vector<Layer> kModels = {
    {"DeepSeek_V3", {"tokens=40", "experts=256", "topk=8", "hidden=448", "inter=128"}},
    {"Qwen3_235B", {"tokens=40", "experts=128", "topk=8", "hidden=256", "inter=96"}},
    {"Mixtral_8x7B", {"tokens=40", "experts=8", "topk=2", "hidden=256", "inter=896"}},
    {"GPT_OSS_120B", {"tokens=40", "experts=128", "topk=4", "hidden=180", "inter=180"}},
};

// Runs the layer under every schedule; all plans share the inputs.
class Schedules {
 public:
  Schedules(std::vector<std::string> parameters, std::string mesh)
      : parameters_(std::move(parameters)), mesh_(std::move(mesh)) {}

  // Requires: `inputs` holds some of the inputs or none; the others are drawn.
  void run(TensorMap inputs = {}) {
    for (const NamedSchedule& schedule : schedules_of("moe")) {
      SCOPED_TRACE(std::string(schedule.name) + " on " + mesh_);
      Session session(false);
      const Checked<Plan> plan = session.plan({.target = "moe",
                                               .parameters = parameters_,
                                               .mesh = mesh_,
                                               .schedule = std::string(schedule.name)});
      ASSERT_TRUE(plan.ok()) << render(plan.error());
      Checked<TensorMap> drawn = inputs.contains("w2") ? inputs : prepare_run(*plan, {});
      ASSERT_TRUE(drawn.ok()) << render(drawn.error());
      for (auto& [name, tensor] : inputs) drawn->insert_or_assign(name, tensor);
      inputs = *drawn;
      check(*plan, inputs);
    }
  }
  [[nodiscard]] int plans() const { return plans_; }
  // By schedule, in the registry's order: push, bulk, fetch, …
  [[nodiscard]] const std::vector<HostTensor>& results() const { return results_; }

 private:
  void check(const Plan& plan, const TensorMap& inputs) {
    Checked<std::unique_ptr<Executor>> executor = make_cpu_executor(plan, {});
    ASSERT_TRUE(executor.ok()) << render(executor.error());
    for (const auto& [name, tensor] : inputs) (void)(*executor)->set_input(name, tensor).value();
    const Result<RunStats, FaultReport> stats = (*executor)->run({.iterations = 2});
    ASSERT_TRUE(stats.ok()) << render(stats.error());
    HostTensor y = (*executor)->output("y").value();
    const Checked<CheckReport> report = check_outputs(plan, inputs, {{"y", y}}, 0, 2);
    ASSERT_TRUE(report.ok()) << render(report.error());
    if (!report->passed()) ADD_FAILURE() << render(failure_of(*report));
    results_.push_back(std::move(y));
    ++plans_;
  }

  std::vector<std::string> parameters_;
  std::string mesh_;
  int plans_ = 0;
  std::vector<HostTensor> results_;
};

class Models : public testing::TestWithParam<Layer> {};

TEST_P(Models, are_right_on_4_and_8_ranks_under_zipf_loads) {
  for (const char* mesh : {"ep=4", "node=2,gpu=4"}) {
    std::vector<std::string> parameters = GetParam().parameters;
    parameters.emplace_back("skew=1.5");
    Schedules schedules(std::move(parameters), mesh);
    schedules.run();
    EXPECT_EQ(schedules.plans(), static_cast<int>(schedules_of("moe").size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, Models, testing::ValuesIn(kModels),
                         [](const auto& layer) { return std::string(layer.param.name); });

const std::vector<std::string> kSmall = {"tokens=21", "experts=8", "topk=2",
                                         "hidden=6",  "inter=10",  "dtype=f32"};

// Router logits [tokens, experts] from a function of token and expert.
template <class Logit>
TensorMap logits(std::int64_t tokens, std::int64_t experts, const Logit& logit) {
  HostTensor router = make_tensor(DType::F32, {tokens, experts});
  for (std::int64_t i = 0; i < element_count(router); ++i) {
    store(router, i, static_cast<double>(logit(i / experts, i % experts)));
  }
  TensorMap inputs;
  inputs.emplace("router", std::move(router));
  return inputs;
}

TEST(Loads, one_hot_expert_takes_every_token) {
  Schedules schedules(kSmall, "ep=4");
  schedules.run(logits(21, 8, [](std::int64_t, std::int64_t e) { return e == 5 ? 9 : -e; }));
  EXPECT_EQ(schedules.plans(), 7);
  // The token's rank adds one row per choice: the sums do not depend on which rank sends the rows.
  EXPECT_EQ(schedules.results()[1].data, schedules.results()[0].data);
  EXPECT_EQ(schedules.results()[2].data, schedules.results()[0].data);
}

TEST(Loads, experts_without_tokens_have_nothing_to_do) {
  Schedules schedules(kSmall, "node=2,gpu=3");
  schedules.run(logits(21, 8, [](std::int64_t, std::int64_t e) { return e < 2 ? 1 : -1; }));
  EXPECT_EQ(schedules.plans(), 7);
}

TEST(Loads, ties_go_to_the_lower_expert_everywhere) {
  Schedules schedules(kSmall, "ep=8");
  schedules.run(logits(21, 8, [](std::int64_t t, std::int64_t) { return t; }));
  EXPECT_EQ(schedules.plans(), 7);
}

TEST(Loads, tokens_of_one_rank_choose_experts_of_another) {
  Schedules schedules(kSmall, "ep=4");
  schedules.run(logits(
      21, 8, [](std::int64_t t, std::int64_t e) { return e / 2 == (t / 6 + 1) % 4 ? 3 : -1; }));
  EXPECT_EQ(schedules.plans(), 7);
}

}  // namespace
}  // namespace harpe
