#include <gmock/gmock.h>

#include "exec/cpu/cpu_executor.h"
#include "tests/unit/exec/plan_builder.h"
#include "tests/unit/exec/plans.h"

namespace harpe::test {
namespace {

using testing::HasSubstr;

// The executor's refusal of a plan: "error[X001]: …".
std::string refusal(const Plan& plan) {
  const Checked<std::unique_ptr<Executor>> made = make_cpu_executor(plan, {});
  return made.ok() ? "accepted" : render(made.error());
}

// One rank and one Compute of the whole statement, with all operands and targets at home.
Plan single(const std::string& declarations, const std::string& over, const std::string& stmt,
            const std::string& form = "") {
  PlanBuilder builder("program one {\n" + declarations + "  nest n over (" + over + ") {\n    " +
                          stmt + "\n  }\n}\n",
                      "mesh m = gpu:1\n",
                      "commir f for one on m {\n" + form + "  nest n {\n    leaf\n  }\n}");
  const Nest& nest = builder.plan().program.nests[0];
  const auto whole = [&](const std::vector<int>& digits) {
    Box box;
    for (const int digit : digits) {
      box.push_back(upto(builder.blocks().digits()[static_cast<std::size_t>(digit)].extent));
    }
    return box;
  };
  const auto refs = [&](const std::vector<Access>& accesses, WriteMode mode) {
    std::vector<Ref> result;
    for (const Access& access : accesses) {
      const auto index = static_cast<std::size_t>(builder.blocks().find_buffer(access.buffer));
      result.push_back(ref(builder.home_of(0, access.buffer), mode,
                           {whole(builder.blocks().buffers()[index].digits)}));
    }
    return result;
  };
  std::vector<int> digits;
  for (const std::string& axis : nest.over) {
    const auto index = static_cast<std::size_t>(builder.blocks().find_axis(axis));
    const std::vector<int>& more = builder.blocks().axes()[index].digits;
    digits.insert(digits.end(), more.begin(), more.end());
  }
  const std::vector<Ref> reads = refs(nest.stmts[0].operands, WriteMode::Read);
  const std::vector<Ref> writes = refs(nest.stmts[0].targets, WriteMode::Init);
  builder.task(builder.queue(0, QueueKind::Sm), TaskKind::Compute, reads, writes, {whole(digits)});
  return builder.finish({});
}

constexpr const char* kMatrices =
    "  axis M = 4\n  axis N = 4\n  axis K = 4\n  buffer a : f32[M, K] in\n"
    "  buffer b : f32[K, N] in\n  buffer c : f32[M, N] out\n";

std::string heads(const std::string& q) {
  return "  axis B = 1\n  axis Sq = 4\n  axis Skv = 4\n  axis H = 2\n  axis D = 4\n  buffer q : "
         "f32[" +
         q +
         "] in\n  buffer k : f32[B, Skv, H, D] in\n  buffer v : f32[B, Skv, H, D] in\n"
         "  buffer o : f32[B, Sq, H, D] out\n  buffer l : f32[B, H, Sq] out\n";
}

TEST(Refusals, X001_a_leaf_without_a_kernel) {
  EXPECT_EQ(refusal(single(kMatrices, "M, N, K", "c sum= convolve(a, b)")),
            "error[X001]: leaf `convolve` of nest `n` has no kernel in the cpu executor");
}

TEST(Refusals, X002_operands_of_two_types) {
  std::string mixed = kMatrices;
  mixed.replace(mixed.find("b : f32"), 7, "b : f16");
  EXPECT_THAT(refusal(single(mixed, "M, N, K", "c sum= matmul(a, b)")),
              HasSubstr("error[X002]: leaf `matmul` of nest `n` has no cpu kernel with `b` in f16; "
                        "it takes f32"));
}

TEST(Refusals, X003_rows_that_lie_in_pieces) {
  Plan plan = single(heads("B, Sq, H, D"), "B, H, Sq, Skv) whole (D",
                     "(o, l) lse= attn_fwd(q, k, v)", "  split D = d0:2 * d1:_\n");
  Task& compute = plan.tasks[1];
  ASSERT_EQ(compute.kind, TaskKind::Compute);
  Alloc half = plan.allocs[compute.reads[1].alloc.index()];
  half.holds = {true, true, true, false, true};  // B, Skv, H, d0, d1
  for (const std::int64_t d0 : {0, 1}) {         // k in two slots, each with half of every row
    plan.allocs.push_back(half);
    Ref& part = d0 == 0 ? compute.reads[1] : compute.reads.emplace_back(compute.reads[1]);
    part.alloc = AllocId(static_cast<std::int64_t>(plan.allocs.size()) - 1);
    part.boxes[0][3] = one(d0);
  }
  EXPECT_EQ(refusal(plan),
            "error[X003]: leaf `attn_fwd` of nest `n` needs `D` whole, but only 2 of its 4 "
            "elements lie in one slot; do not split the axis that the nest calls `whole`");
}

TEST(Refusals, X004_matrices_without_neighbouring_elements) {
  const std::string batched =
      "  axis M = 4\n  axis N = 4\n  axis K = 4\n  axis E = 3\n  buffer a : f32[M, K, E] in\n"
      "  buffer b : f32[E, K, N] in\n  buffer c : f32[E, M, N] out\n";
  EXPECT_EQ(refusal(single(batched, "E, M, N, K", "c sum= matmul(a, b)")),
            "error[X004]: leaf `matmul` of nest `n` reads `a` as a matrix, but elements are "
            "neighbours along neither its rows nor its columns; declare `a` with a row or column "
            "axis last");
}

TEST(Refusals, X005_more_memory_than_the_machine_has) {
  Plan plan = exchange(2, 4, false);
  plan.allocs[0].bytes = std::int64_t{1} << 60;
  EXPECT_THAT(refusal(plan), HasSubstr("error[X005]: the plan needs 2199023255552 MiB for 2 ranks, "
                                       "and this machine has "));
}

// Three plans: one names another executor's kernel, one another leaf's kernel, one the leaf's own.
TEST(Refusals, X019_kernels_that_they_lack) {
  const auto named = [](const std::string& kernel) {
    Plan plan = single(kMatrices, "M, N, K", "c sum= matmul(a, b)");
    plan.tasks.at(1).leaf_kernel = kernel;
    return refusal(plan);
  };
  EXPECT_EQ(named("cublaslt_gemm"),
            "error[X019]: nest `n` names kernel `cublaslt_gemm` for leaf `matmul` on `f32`, which "
            "CPU ranks lack; for this leaf they offer `cpu_gemm`; take the kernel out of the "
            "schedule (no `patch` of this nest, or `patch(nest, kernel=\"any\")`), so that the "
            "executor takes its own, or run on another back end");
  EXPECT_THAT(named("cpu_attention"),
              HasSubstr("error[X019]: nest `n` names kernel `cpu_attention` for leaf `matmul`"));
  EXPECT_EQ(named("cpu_gemm"), "accepted");
}

TEST(Refusals, X006_masks_that_are_not_between_queries_and_keys) {
  EXPECT_EQ(refusal(single(heads("B, Sq, H, D"), "B, H, Sq, Skv) whole (D",
                           "(o, l) lse= attn_fwd(q, k, v) where causal(H, Skv)")),
            "error[X006]: leaf `attn_fwd` of nest `n` is masked on axes that are not its queries "
            "and keys");
}

TEST(Refusals, X007_attention_operands_of_another_shape) {
  EXPECT_THAT(refusal(single(heads("B, Sq, D"), "B, H, Sq, Skv) whole (D",
                             "(o, l) lse= attn_fwd(q, k, v)")),
              HasSubstr("error[X007]: leaf `attn_fwd` of nest `n` takes `q` as [batch, positions"));
}

TEST(Refusals, X008_folds_of_a_monoid_without_one) {
  Plan plan = scatter_gemm(2, 4, 4, 4, "f32", false);
  plan.program.nests[0].stmts[0].monoid = Monoid::Max;
  EXPECT_EQ(refusal(plan),
            "error[X008]: contributions to nest `mm` combine by `max`, which has no cpu fold");
}

TEST(Refusals, X009_routed_operands) {
  Plan plan = single(kMatrices, "M, N, K", "c sum= matmul(a, b)");
  plan.program.nests[0].stmts[0].operands[0].renames = {
      {.axis = "M", .source = "R", .member = "T"}};
  EXPECT_EQ(
      refusal(plan),
      "error[X009]: leaf `matmul` of nest `n` reads `a` through route `R`, which it cannot follow; "
      "use `gather_rows` or `combine_rows`");
}

TEST(Refusals, X010_more_tasks_than_executors_take) {
  Plan plan = exchange(1, 1, false);
  plan.tasks.resize(1'000'001);
  EXPECT_EQ(refusal(plan),
            "error[X010]: the plan has 1000001 tasks, and executors take at most 1000000; use "
            "fewer ranks or coarser steps");
}

TEST(Refusals, spare_a_plan_that_has_kernels_for_everything) {
  EXPECT_EQ(refusal(single(kMatrices, "M, N, K", "c sum= matmul(a, b)")), "accepted");
}

}  // namespace
}  // namespace harpe::test
