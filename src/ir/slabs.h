#pragma once

#include <cstdint>
#include <vector>

#include "ir/blocks.h"

namespace harpe {

// One block of a slab's slots.
struct SlabPart {
  Interval slots;
  std::int64_t before = 0;  // slots of the slab before these
  std::int64_t block = 0;   // index among the axis' `blocks` blocks
  std::int64_t blocks = 1;
};

// The correspondence of `layout C slab(c0, t0, …)`: the tokens of a source block, ascending, and
// the slots that they fill. Without a layout all tokens fill all slots.
struct Slab {
  std::vector<Interval> tokens;
  std::vector<SlabPart> parts;
};

// Requires: the route relates (expert, slot) to (token, choice).
[[nodiscard]] std::vector<Slab> slabs_of(const Blocks& blocks, const Route& route);

// The value of a digit of the axis at a position.
[[nodiscard]] std::int32_t digit_at(const Blocks& blocks, int axis, int digit,
                                    std::int64_t position);

}  // namespace harpe
