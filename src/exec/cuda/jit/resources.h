#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exec/cuda/jit/instructions.h"
#include "exec/cuda/jit/kernel_variant.h"
#include "exec/cuda/jit/nvrtc.h"
#include "support/diag.h"

namespace harpe::cuda {

// What ptxas reports about a kernel.
struct KernelResources {
  std::int64_t registers = 0;     // of a thread
  std::int64_t spill_bytes = 0;   // stored and loaded, of a thread
  std::int64_t stack_bytes = 0;   // of a thread
  std::int64_t shared_bytes = 0;  // static, of a block
  std::string losses;             // ptxas' messages about lost overlap or ignored requests
  friend bool operator==(const KernelResources&, const KernelResources&) = default;
};

// From the compiler's log; `name` is for messages. Errors: G036.
[[nodiscard]] Checked<KernelResources> read_resources(std::string_view name, std::string_view log);

// All that is known of a compiled kernel without a GPU.
struct KernelReport {
  KernelResources resources;
  InstructionCounts instructions;
  double seconds = 0;  // CompiledKernel's
  std::int64_t cubin_bytes = 0;
};
[[nodiscard]] Checked<KernelReport> inspect(const KernelVariant& variant,
                                            const CompiledKernel& kernel);

// Limits that shipped kernels must keep: G030 to G035, G037.
// About 4 s of compilation, which matrix kernels need more of per instruction.
constexpr std::int64_t kMostInstructions = 14'000;
constexpr std::int64_t kMostOfMatrixKernels = 9'000;
[[nodiscard]] std::vector<Diag> check(const KernelVariant& variant, const KernelReport& report);

}  // namespace harpe::cuda
