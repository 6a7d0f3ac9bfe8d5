#pragma once

#include <cstdint>
#include <string_view>

#include "ir/library_kernels.h"

namespace harpe::cuda {

// Whose kernel does a launch for tensor cores: ours, or that of cuBLASLt or cuDNN, which waits for
// nothing inside, raises nothing and is alone in its launch.
enum class LeafEngine : std::uint8_t { Own, Library };

// Of a leaf kernel that `patch` named (schedule/kernels.h); ours where it named none.
[[nodiscard]] constexpr LeafEngine engine_of(std::string_view kernel) {
  return is_of_library(kernel) ? LeafEngine::Library : LeafEngine::Own;
}

}  // namespace harpe::cuda
