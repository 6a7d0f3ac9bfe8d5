#pragma once

#include <cstdint>
#include <string_view>

namespace harpe::cuda {

// Whose kernel does a launch for tensor cores: ours, or that of cuBLASLt or cuDNN, which waits for
// nothing inside, raises nothing and is alone in its launch.
enum class LeafEngine : std::uint8_t { Own, Library };

// Of a leaf kernel that `patch` named (schedule/kernels.h); ours where it named none.
[[nodiscard]] constexpr LeafEngine engine_of(std::string_view kernel) {
  const bool is_library = kernel == "cublaslt_gemm" || kernel == "cudnn_fa_fwd";
  return is_library ? LeafEngine::Library : LeafEngine::Own;
}

}  // namespace harpe::cuda
