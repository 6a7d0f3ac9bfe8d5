#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>

#include "exec/cuda/kernels/prepared_launches.h"
#include "tests/gpu/actions/arena.h"

namespace harpe::testing_support {

// Runs actions on a GPU and on the host from the same bytes. CTest counts the program as skipped
// without a GPU.
class OnGpu : public testing::Test {
 protected:
  void SetUp() override;

  // Expects equal results in both memories. Returns the launches.
  std::vector<cuda::LaunchSpec> check(Arena& arena, const MakeAction& make,
                                      bool by_copy_engine = false);

  // The arena's bytes after all actions, and the launches, batched like those of one task.
  struct Outcome {
    std::vector<std::byte> bytes;
    std::vector<cuda::LaunchSpec> launches;
  };
  [[nodiscard]] Outcome run_on_gpu(const Arena& arena, std::span<const MakeAction> all,
                                   bool by_copy_engine = false);
  [[nodiscard]] std::vector<std::byte> run_on_host(const Arena& arena,
                                                   std::span<const MakeAction> all) const;

  std::unique_ptr<cuda::KernelLibrary> library_;
};

}  // namespace harpe::testing_support
