#pragma once

#include <string_view>

namespace harpe {

// Of the leaf kernels that `patch` names: NVIDIA's libraries do it, not Harpe.
[[nodiscard]] constexpr bool is_of_library(std::string_view kernel) {
  return kernel == "cublaslt_gemm" || kernel == "cudnn_fa_fwd";
}

}  // namespace harpe
