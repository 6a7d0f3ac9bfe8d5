#include "schedule/kernels.h"

#include <algorithm>
#include <array>

namespace harpe {
namespace {

constexpr std::array kKernels = {
    LeafKernel{"cpu_gemm", "matmul", true, true, true},
    LeafKernel{"gemm_sm90", "matmul", true, false},
    LeafKernel{"gemm_sm90_remoteA", "matmul", false, true},
    LeafKernel{"cublaslt_gemm", "matmul", false, false, false, true},
    LeafKernel{"cpu_attention", "attn_fwd", true, true},
    LeafKernel{"fa_fwd_sm90", "attn_fwd", true, false},
    LeafKernel{"cudnn_fa_fwd", "attn_fwd", false, false, false, true},
    LeafKernel{"fa_decode_splitkv", "attn_fwd", false, false},
    LeafKernel{"fa_bwd_sm90", "attn_bwd", false, false},
    LeafKernel{"rowdot", "rowdot", false, false},
    LeafKernel{"gather_rows", "copy", true, false},
    LeafKernel{"grouped_gemm", "matmul_g", true, false},
    LeafKernel{"swiglu", "swiglu", false, false},
    LeafKernel{"combine_rows", "scale_rows", true, false},
};

}  // namespace

std::span<const LeafKernel> all_leaf_kernels() { return kKernels; }

const LeafKernel* find_leaf_kernel(std::string_view name) {
  const auto* found = std::ranges::find(kKernels, name, &LeafKernel::name);
  return found == kKernels.end() ? nullptr : found;
}

}  // namespace harpe
