#include "run/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "exec/cpu/cpu_executor.h"
#include "ir/blocks.h"
#include "run/run.h"
#include "tests/support/plans.h"

namespace harpe {
namespace {

// An executed plan with its inputs and outputs.
struct Executed {
  Plan plan;
  TensorMap inputs;
  TensorMap outputs;
};

Executed execute(Plan plan, std::uint64_t seed = 1) {
  Executed out{.plan = std::move(plan), .inputs = {}, .outputs = {}};
  const Checked<TensorMap> inputs = prepare_run(out.plan, {.seed = seed});
  HP_CHECK(inputs.ok(), render(inputs.error()));
  out.inputs = *inputs;
  const auto executor = make_cpu_executor(out.plan, {});
  HP_CHECK(executor.ok(), render(executor.error()));
  for (const auto& [name, tensor] : out.inputs) (void)(*executor)->set_input(name, tensor).value();
  HP_CHECK((*executor)->run({}).ok(), "fault");
  for (const Buffer* buffer : buffers_of(out.plan.program)) {
    if (buffer->role == Role::Out) {
      out.outputs.emplace(buffer->name, (*executor)->output(buffer->name).value());
    }
  }
  return out;
}

CheckReport check(const Executed& run) {
  Checked<CheckReport> report = check_outputs(run.plan, run.inputs, run.outputs, 0, 2);
  HP_CHECK(report.ok(), render(report.error()));
  return std::move(report).value();
}

TEST(Check, passes_what_only_rounding_separates_from_the_reference) {
  for (const std::string dtype : {"bf16", "f16", "f32", "f64"}) {
    for (const std::string schedule : {"bulk", "ring", "push"}) {
      const Executed run = execute(
          make_plan("gemm_rs", {"m=33", "n=20", "k=130", "dtype=" + dtype}, "x=3", schedule));
      const CheckReport report = check(run);
      EXPECT_TRUE(report.passed()) << dtype << " " << schedule << " " << report.outputs[0].error
                                   << " " << report.outputs[0].bound;
      EXPECT_FALSE(report.sampled);
      EXPECT_EQ(report.outputs[0].checked, 33);
    }
  }
}

TEST(Check, holds_results_below_the_normal_numbers_to_their_last_places) {
  Executed run = execute(make_plan("gemm", {"m=8", "n=8", "k=8", "dtype=f16"}, "x=2", "bulk"));
  for (std::int64_t i = 0; i < element_count(run.inputs.at("a")); ++i) {
    store(run.inputs.at("a"), i, load(run.inputs.at("a"), i) * 0x1p-16);
  }
  const Checked<Meaning> meaning = interpret(run.plan.program, run.inputs, std::nullopt, 1);
  ASSERT_TRUE(meaning.ok());
  HostTensor& c = run.outputs.at("c");
  c = convert(meaning->outputs.at("c"), DType::F16);
  EXPECT_TRUE(check(run).passed()) << "rounded once";
  store(c, 9, load(c, 9) + 16 * 0x1p-24);
  const CheckReport report = check(run);
  EXPECT_FALSE(report.passed()) << "16 steps off";
  EXPECT_EQ(report.outputs[0].at, (std::vector<std::int64_t>{1, 1}));
}

TEST(Check, finds_one_wrong_element) {
  Executed run = execute(make_plan("gemm", {"m=16", "n=16", "k=64"}, "x=2", "ring"));
  HostTensor& c = run.outputs.at("c");
  const double right = load(c, 5 * 16 + 7);
  store(c, 5 * 16 + 7, right + 0.5);
  const CheckReport report = check(run);
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.outputs[0].at, (std::vector<std::int64_t>{5, 7}));
  EXPECT_NEAR(report.outputs[0].got - right, 0.5, 0.02);
  EXPECT_EQ(failure_of(report).code, DiagCode::I401);
}

TEST(Check, finds_a_lost_contribution_even_of_the_smallest_rows) {
  // The last query of a causal attention is a mean over all keys, so its row is the smallest. An
  // error of one key there must not hide behind the first row, which is a single value.
  Executed run = execute(
      make_plan("attention", {"seq=512", "heads=1", "head_dim=16", "causal=true", "dtype=f32"},
                "cp=2", "ring"));
  EXPECT_TRUE(check(run).passed());
  HostTensor& o = run.outputs.at("o");
  for (std::int64_t d = 0; d < 16; ++d) {
    const std::int64_t i = 511 * 16 + d;
    store(o, i, load(o, i) * (1 - 1.0 / 512));
  }
  EXPECT_FALSE(check(run).passed());
}

TEST(Check, finds_a_logsumexp_that_lacks_one_block) {
  Executed run =
      execute(make_plan("attention", {"seq=256", "heads=2", "head_dim=16"}, "cp=4", "ring"));
  EXPECT_TRUE(check(run).passed());
  HostTensor& lse = run.outputs.at("lse");
  store(lse, 100, load(lse, 100) + std::log(1 - 1.0 / 256));
  EXPECT_FALSE(check(run).passed());
}

TEST(Check, never_takes_nan_for_a_number) {
  Executed run = execute(make_plan("gemm", {"m=4", "n=4", "k=4"}, "x=2", "ring"));
  store(run.outputs.at("c"), 3, std::numeric_limits<double>::quiet_NaN());
  const CheckReport report = check(run);
  EXPECT_FALSE(report.passed());
  EXPECT_TRUE(std::isinf(report.outputs[0].error));
}

TEST(Check, follows_nan_and_infinity_of_the_inputs) {
  Executed run = execute(make_plan("gemm", {"m=4", "n=4", "k=4", "dtype=f32"}, "x=2", "ring"));
  const auto executor = make_cpu_executor(run.plan, {});
  ASSERT_TRUE(executor.ok());
  store(run.inputs.at("a"), 0, std::numeric_limits<double>::quiet_NaN());
  for (const auto& [name, tensor] : run.inputs) (void)(*executor)->set_input(name, tensor).value();
  ASSERT_TRUE((*executor)->run({}).ok());
  run.outputs.at("c") = (*executor)->output("c").value();
  EXPECT_TRUE(std::isnan(load(run.outputs.at("c"), 0)));
  EXPECT_TRUE(check(run).passed());
}

TEST(Check, holds_zeros_to_zeros) {
  Executed run = execute(make_plan("gemm", {"m=4", "n=4", "k=4"}, "x=2", "ring"));
  run.inputs.at("a") = make_tensor(DType::BF16, {4, 4});
  run.outputs.at("c") = make_tensor(DType::BF16, {4, 4});
  EXPECT_TRUE(check(run).passed());
  EXPECT_EQ(check(run).outputs[0].error, 0.0);
  store(run.outputs.at("c"), 0, 1e-30);
  EXPECT_FALSE(check(run).passed());
}

TEST(Check, is_not_misled_by_cancellation) {
  // a = [x, x, …, -x, -x, …] against numbers near one: the sum nearly vanishes, but its rounding
  // errors do not.
  Executed run = execute(make_plan("gemm", {"m=2", "n=2", "k=4096", "dtype=f32"}, "x=2", "ring"));
  HostTensor& a = run.inputs.at("a");
  HostTensor& b = run.inputs.at("b");
  for (std::int64_t i = 0; i < 2 * 4096; ++i) {
    store(a, i, (i % 4096 < 2048 ? 1 : -1) * (1 + static_cast<double>(i % 2048) / 3000));
    store(b, i, 1.1 + static_cast<double>(i * 7 % 13) / 17);
  }
  const auto executor = make_cpu_executor(run.plan, {});
  ASSERT_TRUE(executor.ok());
  for (const auto& [name, tensor] : run.inputs) (void)(*executor)->set_input(name, tensor).value();
  ASSERT_TRUE((*executor)->run({}).ok());
  run.outputs.at("c") = (*executor)->output("c").value();
  const CheckReport report = check(run);
  EXPECT_TRUE(report.passed()) << report.outputs[0].error << " " << report.outputs[0].bound;
}

// x [8, 16] in two GEMMs that cancel except for 2^-12; their sum is multiplied by d.
Plan make_chain(const std::string& dtype) {
  const std::string program = R"(program chain {
  axis M = 8
  axis K = 16
  axis N = 64
  axis R = 4
  buffer x : T[M, K] in
  buffer w : T[K, N] in
  buffer v : T[K, N] in
  buffer d : T[N, R] in
  buffer p : T[M, N] temp
  buffer q : T[M, N] temp
  buffer t : T[M, N] temp
  buffer c : T[M, R] out
  nest n0 over (M, N, K) {
    p sum= matmul(x, w)
    q sum= matmul(x, v)
  }
  nest n1 over (M, N) { t = add(p, q) }
  nest n2 over (M, R, N) { c sum= matmul(t, d) }
})";
  return lower_texts(std::regex_replace(program, std::regex("T\\["), dtype + "["), "mesh m = x:2",
                     R"(commir f for chain on m {
  split N = n0:2 * n1:_
  place w[n0@x]
  place v[n0@x]
  place d[n0@x]
  place p[n0@x]
  place q[n0@x]
  place t[n0@x]
  nest n0 {
    par n0 on x
    leaf
  }
  nest n1 {
    par n0 on x
    leaf
  }
  nest n2 {
    par n0 on x
    drain c over x bulk via nccl
    leaf
  }
})");
}

// Executes the plan again with changed inputs.
void execute_again(Executed& run) {
  const auto executor = make_cpu_executor(run.plan, {});
  ASSERT_TRUE(executor.ok());
  for (const auto& [name, tensor] : run.inputs) (void)(*executor)->set_input(name, tensor).value();
  ASSERT_TRUE((*executor)->run({}).ok());
  for (auto& [name, tensor] : run.outputs) tensor = (*executor)->output(name).value();
}

TEST(Check, is_not_misled_by_cancellation_before_a_temporary) {
  for (const std::string dtype : {"f32", "f64", "bf16", "f16"}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Executed run = execute(make_chain(dtype), seed);
      for (std::int64_t i = 0; i < 16 * 64; ++i) {
        store(run.inputs.at("v"), i, -load(run.inputs.at("w"), i) * (1 + 0x1p-12));
      }
      execute_again(run);
      const CheckReport report = check(run);
      EXPECT_TRUE(report.passed()) << dtype << " " << seed << " " << report.outputs[0].error << " "
                                   << report.outputs[0].bound;
    }
  }
}

TEST(Check, finds_a_lost_chunk_behind_temporaries_that_cancel) {
  Executed run = execute(make_chain("f32"));
  for (std::int64_t i = 0; i < 16 * 64; ++i) {
    store(run.inputs.at("v"), i, -load(run.inputs.at("w"), i) * (1 + 0x1p-12));
  }
  execute_again(run);
  EXPECT_TRUE(check(run).passed());
  // Omits the second rank's contribution to the last GEMM, half of N, for one row.
  TensorMap half = run.inputs;
  for (std::int64_t i = 32 * 4; i < 64 * 4; ++i) store(half.at("d"), i, 0);
  const Checked<Meaning> lost = interpret(run.plan.program, half, std::nullopt, 1);
  ASSERT_TRUE(lost.ok());
  for (std::int64_t i = 0; i < 4; ++i) {
    store(run.outputs.at("c"), i, load(lost->outputs.at("c"), i));
  }
  EXPECT_FALSE(check(run).passed());
}

// The sum of two inputs; the wire may round the first.
Plan make_sum(const std::string& wire) {
  return lower_texts(R"(program sum {
  axis M = 4
  axis N = 8
  buffer a : f32[M, N] in
  buffer b : f32[M, N] in
  buffer c : f32[M, N] out
  nest n0 over (M, N) { c = add(a, b) }
})",
                     "mesh m = x:2",
                     "commir f for sum on m {\n  split M = m0:2 * m1:_\n"
                     "  place a[m0@x]\n  nest n0 {\n    stage a over x bulk " +
                         wire + "via nccl\n    leaf\n  }\n}");
}

TEST(Check, holds_a_sum_to_its_terms_only_where_they_are_rounded) {
  for (const std::string wire : {"", "wire bf16 "}) {
    Executed run = execute(make_sum(wire));
    for (std::int64_t i = 0; i < 4 * 8; ++i) {
      store(run.inputs.at("b"), i, -load(run.inputs.at("a"), i) * (1 + 0x1p-16));
    }
    execute_again(run);
    EXPECT_TRUE(check(run).passed()) << "wire: " << wire;
    for (std::int64_t i = 0; i < 8; ++i) store(run.outputs.at("c"), i, 0);
    EXPECT_EQ(check(run).passed(), !wire.empty()) << "exact terms leave no room for a lost row";
  }
}

TEST(Check, measures_numbers_whose_squares_overflow) {
  Executed run = execute(make_plan("gemm", {"m=4", "n=4", "k=8", "dtype=f64"}, "x=2", "bulk"));
  for (std::int64_t i = 0; i < 4 * 8; ++i) {
    store(run.inputs.at("a"), i, load(run.inputs.at("a"), i) * 0x1p600);
  }
  execute_again(run);
  EXPECT_TRUE(check(run).passed());
  HostTensor& c = run.outputs.at("c");
  store(c, 5, load(c, 5) * (1 + 0x1p-20));
  EXPECT_FALSE(check(run).passed());
}

// A GEMM that declares many operations: the check samples by declared operations.
Plan make_declared_large() {
  Plan plan = make_plan("gemm", {"m=3000", "n=8", "k=16", "dtype=f32"}, "x=3", "ring");
  for (Decl& decl : plan.program.decls) {
    if (auto* leaf = std::get_if<LeafDecl>(&decl)) {
      leaf->flops = Poly{.first = std::int64_t{1'000'000'000'000}, .rest = {}};
    }
  }
  return plan;
}

TEST(Check, samples_rows_of_large_programs_and_block_borders_always) {
  const Plan plan = make_declared_large();
  TensorMap inputs;
  inputs.emplace("a", make_tensor(DType::F32, {3000, 16}));
  inputs.emplace("b", make_tensor(DType::F32, {16, 8}));
  const Checked<Blocks> blocks = Blocks::make(plan.program, plan.mesh, plan.form);
  ASSERT_TRUE(blocks.ok());
  const auto& starts = blocks->axes()[static_cast<std::size_t>(blocks->find_axis("M"))].starts;
  for (const std::int64_t row :
       {std::int64_t{0}, starts[1] - 1, starts[1], starts[2] - 1, starts[2], std::int64_t{2999}}) {
    TensorMap outputs;
    outputs.emplace("c", make_tensor(DType::F32, {3000, 8}));
    store(outputs.at("c"), row * 8, 1);
    const Checked<CheckReport> report = check_outputs(plan, inputs, outputs, 3, 2);
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->sampled);
    EXPECT_FALSE(report->passed()) << "row " << row << " is at a border of a block";
    EXPECT_GE(report->outputs[0].checked, kSampledRows);
    EXPECT_LT(report->outputs[0].checked, 2 * kSampledRows);
    EXPECT_EQ(report->outputs[0].rows, 3000);
  }
}

}  // namespace
}  // namespace harpe
