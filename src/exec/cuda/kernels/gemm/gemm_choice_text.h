#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "exec/cuda/kernels/gemm/gemm.h"

namespace harpe::cuda {

// What runs for a GEMM, as launch plans name it: "tile 128x256 stages 4 cluster 2", and with tiles
// cut along K "… cut 3 behind tile 40".
[[nodiscard]] std::string print(const GemmChoice& choice);

// Whether it names a kernel of few rows, whose threads move elements of C and addends.
[[nodiscard]] bool is_of_few_rows(std::string_view text);

// The choice of that text for a spec; none where no variant that can do the spec has it, or cuts
// its tiles so. Requires: check(spec, blocks) is ok.
[[nodiscard]] std::optional<GemmChoice> find_gemm_choice(const GemmSpec& spec,
                                                         std::string_view text);

}  // namespace harpe::cuda
