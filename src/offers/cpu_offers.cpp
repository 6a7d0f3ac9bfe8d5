#include <array>

#include "offers/offers.h"

namespace harpe {
namespace {

constexpr std::array kFloating = {DType::F32, DType::BF16, DType::F16, DType::F64};
constexpr std::array kAny = {DType::F32,    DType::F16,    DType::BF16, DType::F64,
                             DType::F8E4M3, DType::F8E5M2, DType::I8,   DType::U8,
                             DType::I32,    DType::I64,    DType::Bool};

// CPU ranks have one kernel per leaf, so a name selects the kernel that would run anyway.
constexpr std::array kKernels = {
    KernelOffer{.name = "cpu_gemm",
                .leaf = Leaf::Matmul,
                .types = kFloating,
                .chunks = true,
                .remote_operands = true,
                .remote_targets = true},
    KernelOffer{.name = "cpu_attention",
                .leaf = Leaf::AttentionForward,
                .types = kFloating,
                .chunks = true},
    KernelOffer{.name = "cpu_copy",
                .leaf = Leaf::Copy,
                .types = kAny,
                .chunks = true,
                .remote_operands = true,
                .remote_targets = true},
};

constexpr ExecutorOffers kOffers{.executor = "CPU ranks", .kernels = kKernels};

}  // namespace

const ExecutorOffers& cpu_offers() { return kOffers; }

}  // namespace harpe
