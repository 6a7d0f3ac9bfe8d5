#pragma once

#include <cstdint>

#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// The integers that masks read have meanings, and so ranges, which follow from the mask alone.

// Whether the masks that read `buffer` take what `inputs` has for it; anything where none does. Of
// a page table only entries within the lengths beside it count, where `inputs` has those.
// Requires: program is ground, tensors have their buffers' shapes or are parts of them, such as a
// rank has. Errors: P220, P221.
[[nodiscard]] Checked<Ok> check_mask_data(const Program& program, const Buffer& buffer,
                                          const TensorMap& inputs);

// An input drawn at random: what a mask reads within its meaning (a few documents a row; a length,
// now and then none or all; pages in any order, none twice in a row), all else as random_tensor.
[[nodiscard]] HostTensor draw_input(const Program& program, const Buffer& buffer,
                                    std::uint64_t seed);

}  // namespace harpe
