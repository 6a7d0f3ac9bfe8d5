#include <array>

#include "offers/gpu_kernels.h"
#include "offers/offers.h"

namespace harpe {
namespace {

constexpr std::array kHalf = {DType::BF16, DType::F16};
constexpr std::array kNumbers = {DType::F32, DType::BF16, DType::F16, DType::F64};

constexpr std::array kGpuKernels = {
    KernelOffer{.name = kGemmSm90, .leaf = Leaf::Matmul, .types = kHalf, .chunks = true},
    KernelOffer{.name = kCublasLtGemm, .leaf = Leaf::Matmul, .types = kHalf, .by_library = true},
    KernelOffer{
        .name = kAttentionSm90, .leaf = Leaf::AttentionForward, .types = kHalf, .chunks = true},
    KernelOffer{.name = kCudnnAttention,
                .leaf = Leaf::AttentionForward,
                .types = kHalf,
                .by_library = true},
    KernelOffer{.name = kBackwardSm90, .leaf = Leaf::AttentionBackward, .types = kHalf},
    KernelOffer{.name = kRowDot, .leaf = Leaf::RowDot, .types = kNumbers},
};

constexpr ExecutorOffers kGpuOffers{.executor = "GPUs", .kernels = kGpuKernels};

}  // namespace

const ExecutorOffers& gpu_offers() { return kGpuOffers; }

}  // namespace harpe
