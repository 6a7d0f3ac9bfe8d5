#pragma once

#include <cstdint>
#include <string>

namespace harpe::cuda {

// Maximum shared memory of one block, on sm_90.
constexpr std::int64_t kMostSharedBytes = 227 * 1024;

// One kernel as shipped: the text of a translation unit that includes our device headers by their
// paths under src/ and defines `extern "C" __global__ void harpe_kernel(…)`. It is compiled as
// `entry_point(name)`, so that profilers show the variant's name.
struct KernelVariant {
  std::string name;    // "gemm_bf16_128x256x64_c2": unique; letters, digits, `_`
  std::string family;  // "gemm"
  std::string tile;    // "128x256x64", for people
  std::string source;
  std::int32_t threads = 0;       // of a block
  std::int64_t shared_bytes = 0;  // dynamic shared memory of a block
  bool uses_wgmma = true;         // uses tensor cores: its code must contain HGMMA

  friend bool operator==(const KernelVariant&, const KernelVariant&) = default;
};

// Prefix of every variant's entry point.
constexpr const char* kEntryPrefix = "harpe_";

[[nodiscard]] inline std::string entry_point(const std::string& name) {
  return kEntryPrefix + name;
}

}  // namespace harpe::cuda
