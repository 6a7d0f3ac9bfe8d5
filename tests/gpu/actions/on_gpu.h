#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "exec/cuda/actions/launches.h"
#include "tests/gpu/actions/arena.h"

namespace harpe::testing_support {

// Runs actions on a GPU and on the host from the same bytes. CTest counts the program as skipped
// where there is no GPU.
class OnGpu : public testing::Test {
 protected:
  void SetUp() override;

  // Expects the same in both memories. Returns what the launches were.
  std::vector<cuda::LaunchSpec> check(Arena& arena, const MakeAction& make,
                                      bool by_copy_engine = false);

  std::unique_ptr<cuda::KernelLibrary> library_;

 private:
  [[nodiscard]] std::vector<std::byte> run_on_host(const Arena& arena, const MakeAction& make,
                                                   std::vector<std::byte> bytes) const;
};

}  // namespace harpe::testing_support
