#include "exec/cuda/jit/nvrtc.h"

#include <gtest/gtest.h>

#include "exec/cuda/jit/resources.h"

namespace harpe::cuda {
namespace {

// Tests that need the compiler; CTest counts the program as skipped without it.
class WithNvrtc : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::string> folders = {"/usr/local/cuda/lib64"};
    auto compiler = Nvrtc::open(std::nullopt, folders);
    if (!compiler.ok()) GTEST_SKIP() << "skipped: " << render(compiler.error());
    nvrtc_ = *std::move(compiler);
  }

  [[nodiscard]] Checked<CompiledKernel> compile(std::string text,
                                                std::vector<HeaderText> headers = {}) const {
    const KernelSource source{
        .name = "one", .text = std::move(text), .headers = std::move(headers)};
    return nvrtc_->compile(source, compile_options());
  }
  // Inspects a kernel with this body and parameters (float* x, unsigned long long d, int n).
  [[nodiscard]] KernelReport inspect_body(const std::string& body) const {
    const auto kernel = compile(
        "extern \"C\" __global__ void __launch_bounds__(128)\n"
        "harpe_kernel(float* x, unsigned long long d, int n) {\n" +
        body + "}\n");
    EXPECT_TRUE(kernel.ok()) << render(kernel.error());
    const auto report = inspect(KernelVariant{.name = "one"}, *kernel);
    EXPECT_TRUE(report.ok()) << render(report.error());
    return *report;
  }

  std::optional<Nvrtc> nvrtc_;
};
using NvrtcCompiler = WithNvrtc;
using CountedInstructions = WithNvrtc;

TEST_F(NvrtcCompiler, gets_headers_from_memory) {
  const auto kernel = compile(
      "#include \"exec/cuda/device/answer.cuh\"\n"
      "extern \"C\" __global__ void harpe_kernel(int* x) { *x = answer; }",
      {{"exec/cuda/device/answer.cuh", "#pragma once\nconstexpr int answer = 42;\n"}});
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_TRUE(
      kernel->cubin.starts_with("\x7f"
                                "ELF"));
  EXPECT_GT(kernel->seconds, 0);
  EXPECT_TRUE(read_resources("one", kernel->log).ok()) << kernel->log;
}

TEST_F(NvrtcCompiler, hands_on_what_it_says_of_a_wrong_source) {
  const auto kernel = compile("extern \"C\" __global__ void harpe_kernel() { no_such_name = 1; }");
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().code, DiagCode::G004);
  ASSERT_EQ(kernel.error().notes.size(), 1U);
  EXPECT_NE(kernel.error().notes.front().find("one.cu(1): error: identifier \"no_such_name\""),
            std::string::npos)
      << kernel.error().notes.front();
}

TEST_F(NvrtcCompiler, that_is_another_library_is_refused) {
  const auto other = Nvrtc::open("libc.so.6", {});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, DiagCode::G003);
}

// Tests the bit patterns of instructions on kernels that must and must not contain them.
TEST_F(CountedInstructions, see_no_matrix_work_and_no_local_memory_where_there_is_none) {
  const KernelReport report = inspect_body("x[threadIdx.x] = x[n] * static_cast<float>(d);");
  EXPECT_GT(report.instructions.all, 0);
  EXPECT_EQ(report.instructions.matrix, 0);
  EXPECT_EQ(report.instructions.local, 0);
}

TEST_F(CountedInstructions, see_every_matrix_instruction_with_either_kind_of_operand) {
  const KernelReport report = inspect_body(R"(
    float a = 1, b = 2, c = 3, e = 4;
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, "
                 "{%5, %5, %5, %5}, %4, 1, 1, 1, 0;"
                 : "+f"(a), "+f"(b), "+f"(c), "+f"(e) : "l"(d), "r"(n));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, "
                 "%4, %4, 1, 1, 1, 0, 1;"
                 : "+f"(a), "+f"(b), "+f"(c), "+f"(e) : "l"(d));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    x[threadIdx.x] = a + b + c + e;
  )");
  EXPECT_EQ(report.instructions.matrix, 2);
  EXPECT_EQ(report.instructions.local, 0);
}

TEST_F(CountedInstructions, that_wait_for_each_other_are_told) {
  const KernelReport report = inspect_body(R"(
    float a = 1, b = 2, c = 3, e = 4;
    for (int i = 0; i < n; ++i) {
      asm volatile("wgmma.fence.sync.aligned;");
      asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, "
                   "%4, %4, 1, 1, 1, 0, 0;"
                   : "+f"(a), "+f"(b), "+f"(c), "+f"(e) : "l"(d));
      asm volatile("wgmma.commit_group.sync.aligned;");
      a += b;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    x[threadIdx.x] = a + b + c + e;
  )");
  EXPECT_NE(report.resources.losses.find("warpgroup.wait is injected"), std::string::npos)
      << report.resources.losses;
}

TEST_F(CountedInstructions, see_descriptors_that_are_moved_for_each_product) {
  const auto moves_of = [&](const std::string& lane) {
    return inspect_body(R"(
      const unsigned own = threadIdx.x * n & 0xff;
      const unsigned long long from = d >> 32 << 32 | )" +
                        lane + R"(;
      float a = 1, b = 2, c = 3, e = 4;
      asm volatile("wgmma.fence.sync.aligned;");
      for (int i = 0; i < 4; ++i) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, "
                     "%4, %5, 1, 1, 1, 0, 0;"
                     : "+f"(a), "+f"(b), "+f"(c), "+f"(e) : "l"(from + i * 2), "l"(from + i * 128));
      }
      asm volatile("wgmma.commit_group.sync.aligned;");
      asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(a), "+f"(b), "+f"(c), "+f"(e));
      x[threadIdx.x] = a + b + c + e;
    )")
        .instructions.moves;
  };
  EXPECT_GE(moves_of("own"), 9);
  EXPECT_EQ(moves_of("__shfl_sync(0xffffffff, own, 0)"), 0);
}

TEST_F(CountedInstructions, see_an_array_in_local_memory) {
  const KernelReport report = inspect_body(R"(
    int t[64];
    for (int i = 0; i < 64; ++i) t[i] = n * i;
    for (int i = 0; i < n; ++i) t[(i * 7) & 63] += t[i & 63];
    x[0] = static_cast<float>(t[n & 63]);
  )");
  EXPECT_GT(report.instructions.local, 0);
  EXPECT_EQ(report.instructions.matrix, 0);
  EXPECT_EQ(report.resources.stack_bytes, 256);
}

}  // namespace
}  // namespace harpe::cuda
