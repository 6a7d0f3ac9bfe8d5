#pragma once

#include <vector>

#include "bench/cuda/device/args.h"
#include "bench/cuda/gpu.h"

namespace harpe::bench {

// The harness' own kernels: inputs, references in f64, comparisons. Written as simply as possible.

[[nodiscard]] std::vector<cuda::KernelVariant> harness_kernels();

void fill_random(const Gpu& gpu, const FillArgs& args, CUstream stream);
// Keeps one thread busy.
void spin(const Gpu& gpu, std::uint64_t nanoseconds, CUstream stream);
void gemm_reference(const Gpu& gpu, const GemmReferenceArgs& args, CUstream stream);
void attention_reference(const Gpu& gpu, const AttentionReferenceArgs& args, CUstream stream);
// Adds to the verdict.
void compare(const Gpu& gpu, const CompareArgs& args, CUstream stream);
void check_guard(const Gpu& gpu, const GuardArgs& args, CUstream stream);

// A verdict that kernels add to; read after they finish.
class VerdictBox {
 public:
  explicit VerdictBox(const Gpu& gpu);
  void clear(CUstream stream);
  [[nodiscard]] Verdict* device() const;
  // Waits for the stream.
  [[nodiscard]] Verdict read(CUstream stream) const;

 private:
  const Gpu* gpu_;
  cuda::DeviceMemory memory_;
  cuda::MappedMemory copy_;
};

// Largest |out - value| / bound; infinite for a NaN.
[[nodiscard]] double worst_ratio(const Verdict& verdict);
// "" if nothing is wrong, else a description.
[[nodiscard]] std::string describe(const Verdict& verdict, std::int64_t columns);

}  // namespace harpe::bench
