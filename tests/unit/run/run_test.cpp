#include "run/run.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/npy.h"
#include "ir/interpret.h"
#include "tests/support/plans.h"
#include "tests/support/scratch.h"

namespace harpe {
namespace {

Plan gemm() { return make_plan("gemm", {"m=6", "n=4", "k=8", "dtype=f32"}, "x=2", "ring"); }

RunOutcome run_or_die(const Plan& plan, const RunRequest& request) {
  const Checked<TensorMap> inputs = prepare_run(plan, request);
  HP_CHECK(inputs.ok(), render(inputs.error()));
  Checked<RunOutcome> outcome = run(plan, request, *inputs);
  HP_CHECK(outcome.ok(), render(outcome.error()));
  return std::move(outcome).value();
}

TEST(Run, reads_inputs_and_writes_outputs) {
  const Scratch scratch;
  HostTensor a = make_tensor(DType::F64, {6, 8});
  HostTensor b = make_tensor(DType::F32, {8, 4});
  for (std::int64_t i = 0; i < 48; ++i) store(a, i, static_cast<double>(i % 7));
  for (std::int64_t i = 0; i < 32; ++i) store(b, i, static_cast<double>(i % 5) - 2);
  ASSERT_TRUE(write_npy(scratch.path("a.npy"), a).ok());
  ASSERT_TRUE(write_npy(scratch.path("b.npy"), b).ok());
  const RunRequest request{.inputs = {{"a", scratch.path("a.npy")}, {"b", scratch.path("b.npy")}},
                           .outputs = {{"c", scratch.path("c.npy")}},
                           .check = true};
  const RunOutcome outcome = run_or_die(gemm(), request);
  EXPECT_TRUE(outcome.check->passed());
  const Checked<HostTensor> c = read_npy(scratch.path("c.npy"));
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->shape, (std::vector<std::int64_t>{6, 4}));
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < 8; ++k) sum += load(a, i * 8 + k) * load(b, k * 4 + j);
      EXPECT_EQ(load(*c, i * 4 + j), sum);
    }
  }
}

TEST(Run, draws_the_inputs_that_no_file_gives_from_the_seed) {
  const Plan plan = gemm();
  const Checked<TensorMap> first = prepare_run(plan, {.seed = 1});
  const Checked<TensorMap> again = prepare_run(plan, {.seed = 1});
  const Checked<TensorMap> other = prepare_run(plan, {.seed = 2});
  EXPECT_EQ(first->at("a").data, again->at("a").data);
  EXPECT_NE(first->at("a").data, other->at("a").data);
  EXPECT_NE(first->at("a").data, first->at("b").data);
}

TEST(Run, derives_the_inputs_that_follow_from_others_unless_a_file_gives_them) {
  const Scratch scratch;
  const std::vector<std::string> sizes = {"seq=6", "heads=1", "head_dim=4", "causal=true",
                                          "dtype=f32"};
  const Plan backward = make_plan("attention_bwd", sizes, "x=2", "ring");
  const Checked<TensorMap> drawn = prepare_run(backward, {.seed = 7});
  ASSERT_TRUE(drawn.ok()) << render(drawn.error());
  const Plan forward = make_plan("attention", sizes, "x=1", "ring");
  const Checked<Meaning> meaning = interpret(forward.program, *drawn, std::nullopt, 1);
  EXPECT_EQ(drawn->at("o").data, convert(meaning->outputs.at("o"), DType::F32).data);
  EXPECT_EQ(drawn->at("lse").data, convert(meaning->outputs.at("lse"), DType::F32).data);

  const HostTensor zeros = make_tensor(DType::F32, {1, 1, 6});
  ASSERT_TRUE(write_npy(scratch.path("lse.npy"), zeros).ok());
  const Checked<TensorMap> mixed =
      prepare_run(backward, {.inputs = {{"lse", scratch.path("lse.npy")}}, .seed = 7});
  EXPECT_EQ(mixed->at("lse").data, zeros.data);
  EXPECT_EQ(mixed->at("o").data, drawn->at("o").data);
}

TEST(Run, times_every_iteration_and_counts_bytes_like_the_plan) {
  const Plan plan = gemm();
  const RunOutcome outcome = run_or_die(plan, {.iterations = 3});
  EXPECT_EQ(outcome.stats.iterations.size(), 3U);
  std::int64_t bytes = 0;
  for (const Task& task : plan.tasks) {
    if (task.kind == TaskKind::Copy || task.kind == TaskKind::Collective) bytes += task.bytes;
  }
  EXPECT_EQ(outcome.stats.bytes_moved, bytes);
  EXPECT_EQ(outcome.stats.peak_bytes, arena_bytes(plan));
}

TEST(Run, traces_every_task_once) {
  const Scratch scratch;
  const Plan plan = gemm();
  run_or_die(plan, {.trace = scratch.path("t.json")});
  const nlohmann::json trace = nlohmann::json::parse(scratch.read("t.json"));
  std::size_t tasks = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++tasks;
    EXPECT_GE(event["dur"].get<double>(), 0.0);
    EXPECT_LT(event["pid"].get<std::int64_t>(), 2);
    EXPECT_TRUE(event["args"]["task"].get<std::string>().starts_with("task "));
  }
  EXPECT_EQ(tasks, plan.tasks.size());
}

TEST(Run, reports_a_lost_worker_as_a_fault) {
  const Plan plan = gemm();
  const Checked<TensorMap> inputs = prepare_run(plan, {});
  const Checked<RunOutcome> outcome =
      run(plan, {.wait_limit = std::chrono::milliseconds(100), .backend = {.lose_at = TaskId(0)}},
          *inputs);
  ASSERT_TRUE(outcome.ok());
  ASSERT_TRUE(outcome->fault.has_value());
  EXPECT_EQ(outcome->fault->front().kind, FaultKind::WorkerLost);
  EXPECT_EQ(outcome->fault->front().task, TaskId(0));
}

TEST(Run, refuses_before_it_begins) {
  const Scratch scratch;
  const auto refusal = [](const RunRequest& request) {
    const Checked<TensorMap> inputs = prepare_run(gemm(), request);
    return inputs.ok() ? "accepted" : render(inputs.error());
  };
  EXPECT_EQ(refusal({.inputs = {{"q", "x.npy"}}}),
            "error[I301]: `q` is not an input of `gemm` (did you mean `a`?); inputs: `a`, `b`");
  EXPECT_EQ(refusal({.outputs = {{"a", "x.npy"}}}),
            "error[I305]: `a` is not an output of `gemm` (did you mean `c`?); outputs: `c`");
  EXPECT_EQ(scratch.entries(), 0U);
}

}  // namespace
}  // namespace harpe
