#pragma once

#include <cstdint>

#include "ir/program.h"
#include "ir/tensor.h"
#include "support/diag.h"

namespace harpe {

// Value ranges of the integers that masks read. They follow from the mask alone.

// Checks that the masks that read `buffer` accept its data in `inputs`; accepts anything if no mask
// reads it. For a page table only entries within the lengths count, if `inputs` has the lengths.
// Requires: program is ground; tensors have their buffers' shapes or are parts of them, such as a
// rank's. Errors: P220, P221.
[[nodiscard]] Checked<Ok> check_mask_data(const Program& program, const Buffer& buffer,
                                          const TensorMap& inputs);

// Draws a random input. Data that a mask reads is valid: a few documents per row; lengths,
// sometimes zero or full; pages in any order, none twice in a row. Other inputs are as
// random_tensor.
[[nodiscard]] HostTensor draw_input(const Program& program, const Buffer& buffer,
                                    std::uint64_t seed);

}  // namespace harpe
