#pragma once

#include <cstdint>
#include <string>

namespace harpe::cuda {

// What a GPU gives one block of threads at most, on sm_90.
constexpr std::int64_t kMostSharedBytes = 227 * 1024;

// One kernel as it is shipped: the text of a translation unit that includes our device headers by
// their paths under src/ and defines `extern "C" __global__ void harpe_kernel(…)`, which profilers
// show by the variant's name: it is compiled as `entry_point(name)`.
struct KernelVariant {
  std::string name;    // "gemm_bf16_128x256x64_c2": letters, digits and `_`, no other has it
  std::string family;  // "gemm"
  std::string tile;    // "128x256x64", to be read
  std::string source;
  std::int32_t threads = 0;       // of a block
  std::int64_t shared_bytes = 0;  // dynamic shared memory of a block
  bool uses_wgmma = true;         // does matrix work: its instructions must have HGMMA

  friend bool operator==(const KernelVariant&, const KernelVariant&) = default;
};

// Of every variant, which has one.
constexpr const char* kEntryPrefix = "harpe_";

[[nodiscard]] inline std::string entry_point(const std::string& name) {
  return kEntryPrefix + name;
}

}  // namespace harpe::cuda
