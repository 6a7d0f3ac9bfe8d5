#pragma once

#include <cstdint>

#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// The integers that masks read have meanings, and so ranges, which follow from the mask alone.

// `tensor`, as the input `buffer`, is what the masks that read it take; anything where none does.
// Requires: program is ground, `tensor` has the buffer's shape or is a part of it, such as a rank
// has. Errors: P220, P221.
[[nodiscard]] Checked<Ok> check_mask_data(const Program& program, const Buffer& buffer,
                                          const HostTensor& tensor);

// An input drawn at random: what a mask reads within its meaning (a few documents a row; a length,
// now and then none or all; pages in any order), all else as random_tensor.
[[nodiscard]] HostTensor draw_input(const Program& program, const Buffer& buffer,
                                    std::uint64_t seed);

}  // namespace harpe
