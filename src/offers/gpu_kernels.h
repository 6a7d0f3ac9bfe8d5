#pragma once

#include <string_view>

namespace harpe {

// Kernels that the CUDA executor selects by name, as launch plans print them.
inline constexpr std::string_view kGemmSm90 = "gemm_sm90";
inline constexpr std::string_view kCublasLtGemm = "cublaslt_gemm";
inline constexpr std::string_view kAttentionSm90 = "fa_fwd_sm90";
inline constexpr std::string_view kCudnnAttention = "cudnn_fa_fwd";
inline constexpr std::string_view kBackwardSm90 = "fa_bwd_sm90";
inline constexpr std::string_view kRowDot = "rowdot";

}  // namespace harpe
