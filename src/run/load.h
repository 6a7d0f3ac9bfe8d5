#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// The route whose index is made from the input by `topk`, or is the input itself; null for others.
[[nodiscard]] const Route* find_route_by(const Program& program, const Buffer& input);

// Random logits, or choices, under which tokens choose experts in proportion to the route's load
// profile, without choosing one twice: `uniform()`, `zipf(s)` with popularities (i + 1)^-s dealt to
// the experts at random, or the popularities in a file [experts]. Gumbel's trick: the topk largest
// of ln p + noise are such a draw. Reproducible like random_tensor. Errors: I201 to I209 and I101
// of the file, I302 its shape, I306 a popularity below 0, I308 too few above it.
[[nodiscard]] Checked<HostTensor> draw_choices(const Program& program, const Route& route,
                                               const Buffer& input, std::uint64_t seed,
                                               const std::optional<std::string>& file);

}  // namespace harpe
