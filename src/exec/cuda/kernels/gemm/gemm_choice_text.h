#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "exec/cuda/kernels/gemm/gemm.h"

namespace harpe::cuda {

// The variant as launch plans name it: "tile 128x256 stages 4 cluster 2", and with tiles cut along
// K "… cut 3 behind tile 40".
[[nodiscard]] std::string print(const GemmChoice& choice);

// Whether the text names a variant in which threads store C and load addends.
[[nodiscard]] bool moves_by_threads(std::string_view text);

// Parses such a text; none where no variant that can run the spec has this name or can cut its
// tiles so. Requires: check(spec, blocks) is ok.
[[nodiscard]] std::optional<GemmChoice> find_gemm_choice(const GemmSpec& spec,
                                                         std::string_view text);

}  // namespace harpe::cuda
