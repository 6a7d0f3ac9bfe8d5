#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "exec/cuda/kernels/copy_engine/copy_launch.h"
#include "exec/cuda/kernels/plain/plain_launch.h"
#include "exec/cuda/profile/leaf_grid.h"
#include "tests/support/fake_driver.h"

namespace harpe::cuda::profile {
namespace {

constexpr int kMultiprocessors = 132;
constexpr DeviceAddress kSource = DeviceAddress{1} << 40;
constexpr DeviceAddress kTarget = DeviceAddress{1} << 41;

// A GPU endpoint without a GPU, with what plans need.
class Profile : public testing::Test {
 protected:
  void SetUp() override {
    const auto driver = testing_support::make_fake_driver();
    Checked<Device> opened = Device::open(driver, DeviceId(0));
    ASSERT_TRUE(opened.ok()) << render(opened.error());
    device_ = *opened;
    member_.device = &*device_;
    member_.source = kSource;
    member_.target = kTarget;
  }

  std::optional<Device> device_;
  Member member_;
};

using Key = std::tuple<std::string, std::string, bool, double, double, double, double, double>;

Key key_of(const LeafFigure& f) {
  return {f.leaf, f.dtype, f.causal, f.batch, f.rows, f.columns, f.depth, f.bytes};
}

TEST_F(Profile, measures_shapes_that_kernels_take_and_memory_holds) {
  for (const bool quick : {true, false}) {
    for (const std::vector<std::int64_t>& cuts :
         std::vector<std::vector<std::int64_t>>{{2, 4, 8}, {2}, {3}, {4}, {6}, {8}}) {
      const std::int64_t ranks = cuts.back();
      SCOPED_TRACE(std::to_string(cuts.size()) + " cuts up to " + std::to_string(ranks) +
                   (quick ? ", quick" : ""));
      std::set<Key> known;
      for (const auto& cases :
           {gemm_cases(cuts, quick), attention_cases(ranks, quick), plain_cases(quick)}) {
        for (const LeafCase& one : cases) {
          EXPECT_TRUE(known.insert(key_of(one.figure)).second) << one.figure.leaf;
          EXPECT_LE(one.in_bytes, kSourceBytes);
          EXPECT_LE(one.out_bytes, kTargetBytes);
          EXPECT_GT(one.guess, 0);
          const auto specs = one.plan(member_, {.in = kSource, .out = kTarget});
          ASSERT_TRUE(specs.ok()) << render(specs.error());
          EXPECT_EQ(specs->size(), 1U) << one.figure.leaf;
          for (const LaunchSpec& spec : *specs) {
            const Checked<Ok> checked = spec->check(kMultiprocessors);
            EXPECT_TRUE(checked.ok()) << one.figure.leaf << ": " << render(checked.error());
          }
        }
      }
      EXPECT_EQ(known.contains({"matmul", "bf16", false, 1, 8192, 8192, 8192, 384.0 * 1048576}),
                true);
    }
  }
}

TEST_F(Profile, counts_what_a_shape_computes_and_touches) {
  const HeadsShape shape{.heads = 32, .kv_heads = 8, .queries = 4096, .keys = 4096};
  const LeafFigure whole = attention_case(shape).figure;
  EXPECT_EQ(whole.batch, 32);
  EXPECT_EQ(whole.flops, 4.0 * 32 * 4096 * 4096 * 128);
  EXPECT_EQ(whole.bytes, 2.0 * (2 * 32 + 2 * 8) * 4096 * 128);
  HeadsShape causal = shape;
  causal.causal = true;
  EXPECT_EQ(attention_case(causal).figure.flops, 4.0 * 32 * (4096.0 * 4097 / 2) * 128);
  const LeafFigure product = gemm_case({.m = 16, .n = 32, .k = 64}).figure;
  EXPECT_EQ(product.flops, 2.0 * 16 * 32 * 64);
  EXPECT_EQ(product.bytes, 2.0 * (16 * 64 + 64 * 32 + 16 * 32));
}

TEST_F(Profile, copies_by_the_engine_or_by_so_many_blocks) {
  constexpr std::int64_t kBytes = 1 << 20;
  const auto engine = copy_spec(member_, Way::Engine, kTarget, kSource, kBytes);
  ASSERT_TRUE(engine.ok());
  ASSERT_TRUE(engine->is<CopyLaunch>());
  EXPECT_EQ(engine->get<CopyLaunch>().bytes, kBytes);
  for (const std::int64_t blocks : {0, 5}) {
    const auto kernel = copy_spec(member_, Way::Kernel, kTarget, kSource, kBytes, blocks);
    ASSERT_TRUE(kernel.ok());
    const auto& launch = kernel->get<PlainLaunch>();
    EXPECT_EQ(launch.kernel, PlainKernel::Move);
    // 256 threads move 16 bytes each.
    EXPECT_EQ(launch.blocks, blocks == 0 ? kBytes / 16 / 256 : blocks);
  }
}

TEST_F(Profile, says_which_gpu_waited_in_vain) {
  device::FaultRecord record{};
  record.elapsed_ns = 5'200'000'000;
  const Diag diag = lost_signal(3, record);
  EXPECT_EQ(diag.code, DiagCode::N017);
  EXPECT_EQ(
      render_message(diag),
      "rank 3 cannot run its part of the plan: it waited 5 s for a signal that was not raised");
}

TEST(ProfileTimes, fill_a_graph_with_four_milliseconds) {
  EXPECT_EQ(times_of(1e-3, 100), 4);
  EXPECT_EQ(times_of(1e-6, 100), 100);
  EXPECT_EQ(times_of(1, 100), 1);
}

}  // namespace
}  // namespace harpe::cuda::profile
