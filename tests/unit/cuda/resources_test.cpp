#include "exec/cuda/jit/resources.h"

#include <gtest/gtest.h>

#include <string>

namespace harpe::cuda {
namespace {

constexpr std::string_view kLog =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'harpe_kernel' for 'sm_90a'\n"
    "ptxas info    : Function properties for harpe_kernel\n"
    "ptxas         .     256 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
    "ptxas info    : Used 38 registers, used 1 barriers, 256 bytes cumulative stack size, 1024 "
    "bytes smem\n"
    "ptxas info    : Compile time = 7.868 ms";

const KernelVariant kVariant{.name = "one",
                             .family = "test",
                             .tile = "",
                             .source = "",
                             .threads = 128,
                             .shared_bytes = kMostSharedBytes,
                             .uses_wgmma = true};

std::vector<std::string> findings_of(const KernelReport& report) {
  std::vector<std::string> names;
  for (const Diag& diag : check(kVariant, report)) {
    names.push_back(std::string(info(diag.code).name) + " " + render_message(diag));
  }
  return names;
}

TEST(KernelResources, are_read_from_the_log) {
  const auto resources = read_resources("one", kLog);
  ASSERT_TRUE(resources.ok());
  EXPECT_EQ(*resources, (KernelResources{.registers = 38,
                                         .spill_bytes = 20,
                                         .stack_bytes = 256,
                                         .shared_bytes = 1024,
                                         .losses = ""}));
}

TEST(KernelResources, tell_once_what_ptxas_says_of_matrix_work) {
  const std::string said =
      "ptxas info    : (C7517) warpgroup.wait is injected in around line 63\n"
      "ptxas info    : (C7517) warpgroup.wait is injected in around line 73\n"
      "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async are serialized\n";
  const auto resources = read_resources("one", said + std::string(kLog));
  ASSERT_TRUE(resources.ok());
  EXPECT_EQ(resources->losses,
            "(C7517) warpgroup.wait is injected in around line 63; "
            "(C7511) Potential Performance Loss: wgmma.mma_async are serialized");
}

TEST(KernelResources, are_not_guessed_where_the_log_lacks_them) {
  const auto resources = read_resources("one", "ptxas info    : Used many registers");
  ASSERT_FALSE(resources.ok());
  EXPECT_EQ(resources.error().code, DiagCode::G036);
}

TEST(KernelCheck, finds_nothing_in_a_sound_kernel) {
  KernelReport report;
  report.instructions.matrix = 1;
  EXPECT_EQ(findings_of(report), std::vector<std::string>());
}

TEST(KernelCheck, allows_more_instructions_without_tensor_cores) {
  KernelVariant plain = kVariant;
  plain.uses_wgmma = false;
  const auto is_allowed = [](const KernelVariant& variant, std::int64_t instructions) {
    KernelReport report;
    report.instructions = {.all = instructions, .matrix = 1};
    return check(variant, report).empty();
  };
  EXPECT_TRUE(is_allowed(kVariant, 9'000));
  EXPECT_FALSE(is_allowed(kVariant, 9'001));
  EXPECT_TRUE(is_allowed(plain, 14'000));
  EXPECT_FALSE(is_allowed(plain, 14'001));
}

TEST(KernelCheck, finds_everything_a_shipped_kernel_may_not_be) {
  const KernelReport report{
      .resources = {.spill_bytes = 8, .shared_bytes = 16, .losses = "(C7510) slow"},
      .instructions = {.all = 9'001, .matrix = 0, .local = 3, .moves = 4},
      .cubin_bytes = 0};
  EXPECT_EQ(
      findings_of(report),
      (std::vector<std::string>{
          "G030 kernel `one` spills 8 bytes of registers",
          "G031 kernel `one` needs 232464 bytes of shared memory, and a block has 232448",
          "G032 kernel `one` has 9001 instructions, more than 9000",
          "G033 kernel `one` is not compiled as its source states: (C7510) slow",
          "G034 kernel `one` has no HGMMA instruction",
          "G035 kernel `one` has 3 instructions on local memory",
          "G037 kernel `one` moves registers 4 times between matrix instructions of a group"}));
}

TEST(Instructions, of_what_is_no_cubin_are_not_counted) {
  const std::string damaged =
      "\x7f"
      "ELF" +
      std::string(60, '\xff');
  for (const std::string& cubin : {std::string(), std::string("text"), damaged}) {
    const auto counts = count_instructions("one", cubin);
    ASSERT_FALSE(counts.ok());
    EXPECT_EQ(counts.error().code, DiagCode::G036);
  }
}

}  // namespace
}  // namespace harpe::cuda
