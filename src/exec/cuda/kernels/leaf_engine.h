#pragma once

#include <cstdint>
#include <string_view>

#include "offers/offers.h"

namespace harpe::cuda {

// Whose kernel runs a tensor-core launch: ours, or one of cuBLASLt or cuDNN. A library's kernel
// cannot wait inside or raise signals, and is alone in its launch.
enum class LeafEngine : std::uint8_t { Own, Library };

// The engine of a kernel that `patch` named; ours if it named none.
[[nodiscard]] inline LeafEngine engine_of(std::string_view kernel) {
  const KernelOffer* const offer = gpu_offers().find(kernel);
  return offer != nullptr && offer->by_library ? LeafEngine::Library : LeafEngine::Own;
}

}  // namespace harpe::cuda
