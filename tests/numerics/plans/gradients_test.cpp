// Gradients that a plan computes, against finite differences of attention, which share nothing with
// either reference's formula; and partial sums on a narrower wire.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "compile/session.h"
#include "exec/cpu/cpu_executor.h"
#include "ir/interpret.h"
#include "run/check.h"
#include "run/run.h"
#include "schedule/primitive.h"
#include "schedule/replay.h"
#include "verify/verify.h"

namespace harpe {
namespace {

const std::vector<std::string> kSizes = {"batch=1",    "seq=7",      "kv_seq=8",     "heads=2",
                                         "kv_heads=1", "head_dim=3", "v_head_dim=2", "causal=true"};

std::vector<std::string> with_dtype(const std::string& dtype) {
  std::vector<std::string> parameters = kSizes;
  parameters.push_back("dtype=" + dtype);
  return parameters;
}

Checked<TensorMap> draw(const Plan& plan) {
  RunRequest request;
  request.seed = 11;
  return prepare_run(plan, request);
}

TensorMap execute(const Plan& plan, const TensorMap& inputs) {
  Checked<std::unique_ptr<Executor>> executor = make_cpu_executor(plan, {});
  HP_CHECK(executor.ok(), render(executor.error()));
  for (const auto& [name, tensor] : inputs) (void)(*executor)->set_input(name, tensor).value();
  HP_CHECK((*executor)->run({}).ok(), "a run without faults");
  TensorMap outputs;
  for (const char* name : {"dq", "dk", "dv"}) outputs[name] = (*executor)->output(name).value();
  return outputs;
}

double objective(const Program& forward, const TensorMap& inputs) {
  const Checked<Meaning> meaning = interpret(forward, inputs, std::nullopt, 1);
  HP_CHECK(meaning.ok(), "attention of the same shape");
  const HostTensor& o = meaning->outputs.at("o");
  double sum = 0;
  for (std::int64_t i = 0; i < element_count(o); ++i) sum += load(o, i) * load(inputs.at("do"), i);
  return sum;
}

TEST(Gradients, of_an_executed_plan_are_finite_differences_of_attention) {
  Session session(true);
  const Checked<Program> forward = session.program({.target = "attention",
                                                    .parameters = with_dtype("f64"),
                                                    .mesh = std::nullopt,
                                                    .schedule = std::nullopt});
  ASSERT_TRUE(forward.ok());
  for (const char* schedule : {"zigzag_ring", "allgather", "usp"}) {
    const Checked<Plan> plan = session.plan({.target = "attention_bwd",
                                             .parameters = with_dtype("f64"),
                                             .mesh = "x=3",
                                             .schedule = schedule});
    ASSERT_TRUE(plan.ok()) << render(plan.error());
    Checked<TensorMap> inputs = draw(*plan);
    ASSERT_TRUE(inputs.ok());
    const TensorMap gradients = execute(*plan, *inputs);
    for (const char* name : {"q", "k", "v"}) {
      const HostTensor& gradient = gradients.at("d" + std::string(name));
      HostTensor& input = inputs->at(name);
      for (std::int64_t i = 0; i < element_count(input); ++i) {
        constexpr double kStep = 1e-5;
        const double x = load(input, i);
        store(input, i, x + kStep);
        const double above = objective(*forward, *inputs);
        store(input, i, x - kStep);
        const double below = objective(*forward, *inputs);
        store(input, i, x);
        // lse and delta are f32: weights err relatively by 2^-24 of 1 and of the logarithm.
        EXPECT_NEAR(load(gradient, i), (above - below) / (2 * kStep), 1e-6)
            << schedule << " d" << name << " " << i;
      }
    }
  }
}

struct Wired {
  double error = 0;  // of dk
  double bound = 0;
  std::int64_t bytes = 0;  // sent by drains
};

Wired run_with_wire(const std::string& dtype, std::optional<DType> wire) {
  Session session(true);
  Checked<Scheduled> scheduled =
      session.schedule({.target = "attention_bwd",
                        .parameters = {"seq=64", "heads=2", "head_dim=16", "dtype=" + dtype},
                        .mesh = "x=4",
                        .schedule = "ring"});
  HP_CHECK(scheduled.ok(), render(scheduled.error()));
  if (wire) {
    scheduled->script->steps.push_back(
        to_step(Primitive{Compress{"bwd", {"dk", "dv"}, {"x"}, std::nullopt, *wire}}));
    Checked<NormalForm> form = replay(scheduled->program, scheduled->mesh, *scheduled->script);
    HP_CHECK(form.ok(), render(form.error()));
    scheduled->form = *form;
  }
  const Checked<Plan> plan = session.lower(*scheduled);
  HP_CHECK(plan.ok() && verify(*plan).ok(), "a plan that verifies");
  const Checked<TensorMap> inputs = draw(*plan);
  const TensorMap outputs = execute(*plan, *inputs);
  const Checked<CheckReport> report = check_outputs(*plan, *inputs, outputs, 3, 1);
  Wired out;
  EXPECT_TRUE(report->passed()) << render(failure_of(*report));
  for (const Comparison& one : report->outputs) {
    if (one.buffer == "dk") out = {one.error, one.bound, 0};
  }
  for (const Alloc& alloc : plan->allocs) {
    if (alloc.level == Level::Inbox) out.bytes += alloc.bytes;
  }
  return out;
}

TEST(Gradients, travel_in_the_type_that_compress_says) {
  const Wired whole = run_with_wire("f32", std::nullopt);
  const Wired narrow = run_with_wire("f32", DType::BF16);
  EXPECT_EQ(narrow.bytes * 2, whole.bytes);
  EXPECT_LT(whole.error, 1e-6);
  EXPECT_GT(narrow.error, 1e-4);
  EXPECT_GT(narrow.bound, 4 * 4 * unit_roundoff(DType::BF16)) << "four hops";
  EXPECT_EQ(run_with_wire("bf16", std::nullopt).bytes, whole.bytes) << "sums travel in f32";
  EXPECT_EQ(run_with_wire("bf16", DType::BF16).bytes, narrow.bytes);
}

}  // namespace
}  // namespace harpe
