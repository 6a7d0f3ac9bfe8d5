#pragma once

#include <cstdint>
#include <string_view>

#include "offers/offers.h"

namespace harpe::cuda {

// Whose kernel does a launch for tensor cores: ours, or that of cuBLASLt or cuDNN, which waits for
// nothing inside, raises nothing and is alone in its launch.
enum class LeafEngine : std::uint8_t { Own, Library };

// Of a kernel that `patch` named; ours where it named none.
[[nodiscard]] inline LeafEngine engine_of(std::string_view kernel) {
  const KernelOffer* const offer = gpu_offers().find(kernel);
  return offer != nullptr && offer->by_library ? LeafEngine::Library : LeafEngine::Own;
}

}  // namespace harpe::cuda
