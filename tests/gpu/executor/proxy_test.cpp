#include "ir/text.h"
#include "lower/lower.h"
#include "support/check.h"
#include "tests/gpu/executor/gpu_fixture.h"
#include "tests/support/proxy_plan.h"

// Plans across nodes: kernels send through rings, proxies and pinned memory, and kernels wait for
// what arrives.
namespace harpe::test {
namespace proxy_test {

// Sums of 64 products of values below 1, rounded to bf16.
constexpr double kBound = 0.2;

// Two nodes of two GPUs: rows cross once by proxy, and copy engines forward them within the node.
constexpr const char* kHierarchical = R"(
program gemm {
  axis M = 48
  axis N = 40
  axis K = 32
  buffer a : f32[M, K] in
  buffer b : f32[K, N] in
  buffer c : f32[M, N] out
  nest mm over (M, N, K) {
    c sum= matmul(a, b)
  }
}
mesh nodes = node:2, gpu:2
commir hierarchical for gemm on nodes {
  split M = m0:2 * m1:2 * m2:3 * m3:_
  split N = n0:2 * n1:2 * n2:_
  place a[m0@node, m1@gpu]
  place b[n0@node, n1@gpu]
  place c[n0@node, n1@gpu]
  nest mm {
    par n0 on node
    par n1 on gpu
    stage a over node direct by src grain m2 via proxy signal flag
    stage a over gpu direct by src via ce signal flag
    leaf
  }
}
)";

template <class T>
T valid(Checked<T> value) {
  HP_CHECK(value.ok(), render(value.error()));
  return std::move(value).value();
}

Plan hierarchical_plan(Fence fence) {
  Cursor cursor = valid(Cursor::open(kHierarchical));
  const Program program = valid(parse_program(cursor));
  const Mesh mesh = valid(parse_mesh(cursor));
  NormalForm form = valid(parse_form(cursor));
  for (NestItem& item : form.nests.front().items) {
    auto* const move = std::get_if<Move>(&item);
    if (move != nullptr && move->via == Via::Proxy) move->fence = fence;
  }
  return valid(lower(program, mesh, form));
}

class Proxies : public OnGpus {
 protected:
  static std::vector<Plan> plans(Fence fence) {
    return {by_proxy(push_plan(), fence),
            by_proxy(scatter_gemm(4, 50, 37, 43, "f32", false), fence), hierarchical_plan(fence)};
  }
  static void expect_right_under_every_fence(const cuda::NetworkOptions& network) {
    for (const Fence fence : kAllFences) {
      for (const Plan& plan : plans(fence)) {
        SCOPED_TRACE(std::string(print(fence)) + " " + plan.form.name);
        auto executor = make_ready(plan, {.network = network});
        const bool has_none = !executor.ok() && (executor.error().code == DiagCode::N001 ||
                                                 executor.error().code == DiagCode::N002);
        if (has_none) GTEST_SKIP() << "skipped: " << render(executor.error());
        ASSERT_TRUE(executor.ok()) << render(executor.error());
        for (const std::int64_t iterations : {1, 50}) {
          const auto stats = (*executor)->run({.iterations = iterations});
          ASSERT_TRUE(stats.ok()) << render(stats.error());
          expect_right(**executor, plan, kBound);
        }
      }
    }
  }
};

TEST_F(Proxies, give_what_the_program_means_through_shared_memory) {
  expect_right_under_every_fence({.provider = "shared"});
}

TEST_F(Proxies, give_what_the_program_means_over_tcp) {
  expect_right_under_every_fence({.provider = "tcp;ofi_rxm", .interface = "lo"});
}

// Delays packing, landing and posting, differently each time.
TEST_F(Proxies, are_right_whatever_comes_late) {
  for (const Fence fence : kAllFences) {
    const Plan plan = hierarchical_plan(fence);
    auto executor = make_ready(plan, {.delay_seed = 3});
    ASSERT_TRUE(executor.ok()) << render(executor.error());
    const auto stats = (*executor)->run({.iterations = 500});
    ASSERT_TRUE(stats.ok()) << render(stats.error());
    expect_right(**executor, plan, kBound);
  }
}

TEST_F(Proxies, say_which_put_never_arrived) {
  const Plan plan = by_proxy(push_plan(), Fence::NicOrdered);
  std::size_t put = 0;
  while (!is_put(plan, plan.tasks[put]) || plan.tasks[put].bytes == 0) ++put;
  auto executor = make_ready(plan, {.wait_limit = std::chrono::milliseconds(500),
                                    .drop_signal_of = TaskId(static_cast<std::int64_t>(put))});
  ASSERT_TRUE(executor.ok()) << render(executor.error());
  RunOptions options;
  options.wait_limit = std::chrono::milliseconds(500);
  const auto stats = (*executor)->run(options);
  ASSERT_FALSE(stats.ok());
  // The landing and the kernel behind it wait for the lost put.
  EXPECT_EQ(stats.error().front().kind, FaultKind::WaitTimedOut) << render(stats.error());
  EXPECT_EQ(stats.error().front().producer.index(), put) << render(stats.error());
}

}  // namespace proxy_test
}  // namespace harpe::test
