#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// The route whose index `topk` makes from the input, or is the input itself; null for other inputs.
[[nodiscard]] const Route* find_route_by(const Program& program, const Buffer& input);

// Draws random logits, or choices, under which tokens choose experts in proportion to the route's
// load profile, without choosing one twice: `uniform()`, `zipf(s)` with popularities (i + 1)^-s
// that are assigned to experts at random, or the popularities in a file [experts]. By Gumbel's
// trick the topk largest of ln p + noise are such a draw. Reproducible like random_tensor. Errors:
// I201 to I209 and I101 of the file, I302 its shape, I306 a popularity below 0, I308 too few above
// 0.
[[nodiscard]] Checked<HostTensor> draw_choices(const Program& program, const Route& route,
                                               const Buffer& input, std::uint64_t seed,
                                               const std::optional<std::string>& file);

}  // namespace harpe
