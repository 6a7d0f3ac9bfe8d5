#include "exec/cuda/library/leaves.h"

#include <gtest/gtest.h>

#include "exec/cuda/kernels/attention/cudnn_shape.h"
#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/plan_launches.h"
#include "tests/support/fake_driver.h"

namespace harpe::library {
namespace {

using cuda::AttentionSpec;
using cuda::GemmSpec;
using cuda::LaunchChoice;
using cuda::LaunchSpec;
using cuda::LeafEngine;
using cuda::plan_launches;

const LaunchChoice kByLibrary{.nest = "main", .buffer = "c", .kernel = "cublaslt_gemm"};

std::byte* at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

actions::Multiply product(DType dtype, std::int64_t n) {
  actions::Multiply result;
  result.first = {.m = 64,
                  .n = n,
                  .k = 64,
                  .a = {.data = at(4096), .dtype = dtype, .row_stride = 64, .column_stride = 1},
                  .b = {.data = at(1 << 20), .dtype = dtype, .row_stride = n, .column_stride = 1},
                  .c = at(1 << 24),
                  .c_row_stride = n};
  return result;
}

// Rows of 63 elements are misaligned for Harpe's kernel.
TEST(Leaves, are_handed_products_that_ours_do_not_take) {
  const auto ours = plan_launches({.nest = "main", .buffer = "c"}, product(DType::BF16, 63));
  ASSERT_TRUE(ours.ok());
  EXPECT_FALSE(ours->front().is<GemmSpec>());
  const auto theirs = plan_launches(kByLibrary, product(DType::BF16, 63));
  ASSERT_TRUE(theirs.ok()) << render(theirs.error());
  ASSERT_EQ(theirs->size(), 1U);
  EXPECT_EQ(theirs->front().get<GemmSpec>().engine, LeafEngine::Library);
  EXPECT_EQ(theirs->front()->name(), "cublaslt_gemm");
}

TEST(Leaves, refuse_by_name_what_no_kernel_of_theirs_takes) {
  const auto refused = plan_launches(kByLibrary, product(DType::F32, 64));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, DiagCode::G083);
  EXPECT_EQ(render_message(refused.error()),
            "kernel `cublaslt_gemm` of nest `main` cannot compute this block: it takes no "
            "operands of `f32`, or their rows are no multiples of 16 bytes");
}

// A kernel requested by name is never replaced by another one.
TEST(Leaves, refuse_by_name_what_a_kernel_of_ours_does_not_take) {
  const LaunchChoice by_ours{.nest = "main", .buffer = "c", .kernel = "gemm_sm90"};
  const auto taken = plan_launches(by_ours, product(DType::BF16, 64));
  ASSERT_TRUE(taken.ok()) << render(taken.error());
  EXPECT_EQ(taken->front().get<GemmSpec>().engine, LeafEngine::Own);
  const auto refused = plan_launches(by_ours, product(DType::BF16, 63));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(render_message(refused.error()),
            "kernel `gemm_sm90` of nest `main` cannot compute this block: it takes no operands "
            "of `bf16`, or their rows are no multiples of 16 bytes");
}

// `rows` queries from position `lead` on, against `keys` keys from 0 on.
AttentionSpec causal(std::int64_t rows, std::int64_t keys, std::int64_t lead) {
  AttentionSpec spec{.heads = 4, .kv_heads = 2, .query_dim = 64, .value_dim = 64, .causal = true};
  spec.panels = {{.rows = rows, .position = lead}};
  spec.chunks = {{.rows = keys}};
  return spec;
}

std::string refusal(const AttentionSpec& spec) {
  const auto shape = shape_of(spec);
  return shape.ok() ? "" : shape.error().reason;
}

TEST(Leaves, see_causal_masks_from_a_corner) {
  const auto square = shape_of(causal(64, 64, 0));
  ASSERT_TRUE(square.ok());
  EXPECT_TRUE(square->from_first);
  const auto last = shape_of(causal(64, 256, 192));
  ASSERT_TRUE(last.ok());
  EXPECT_FALSE(last->from_first);
  EXPECT_EQ(last->keys, 256);
}

// No query sees keys beyond the last query's own position.
TEST(Leaves, leave_out_keys_that_nobody_sees) {
  const auto second = shape_of(causal(64, 256, 64));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->keys, 128);
  const auto first = shape_of(causal(64, 256, 0));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->keys, 64);
}

TEST(Leaves, are_refused_where_there_is_no_such_library) {
  const auto device = cuda::Device::open(testing_support::make_fake_driver(), cuda::DeviceId(0));
  ASSERT_TRUE(device.ok());
  Leaves leaves(*device, {.file = "/nowhere/libcublasLt.so"});
  const auto launches = plan_launches(kByLibrary, product(DType::BF16, 64));
  ASSERT_TRUE(launches.ok());
  const auto products = leaves.products({.kernel = "cublaslt_gemm", .nest = "main"});
  ASSERT_FALSE(products.ok());
  EXPECT_EQ(products.error().code, DiagCode::G084);
}

TEST(Leaves, say_why_attention_is_none_of_theirs) {
  EXPECT_EQ(refusal(causal(64, 100, 64)), "its last 28 queries see all keys, the others not");
  AttentionSpec later = causal(64, 64, 0);
  later.chunks.front().position = 1;
  EXPECT_EQ(refusal(later), "its first queries see no key");
  AttentionSpec carried = causal(64, 64, 0);
  carried.carried = true;
  EXPECT_EQ(refusal(carried), "it goes on with a state, and cuDNN begins anew");
  AttentionSpec left = causal(64, 64, 0);
  left.to_state = true;
  EXPECT_EQ(refusal(left), "it leaves a state in f32, and cuDNN rounds its results");
  AttentionSpec parts = causal(64, 64, 0);
  parts.chunks.push_back({.rows = 64});
  EXPECT_EQ(refusal(parts), "it has several blocks of queries or keys");
}

}  // namespace
}  // namespace harpe::library
