#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe {

// Where blocks lie inside a slot (D15): dense in the buffer's dimension order, blocks at their true
// lengths, in logical order along every axis. The shape of a slot depends on the digits it does not
// hold whole, which any block in it names.

// One axis of a slot's current content.
struct SlotAxis {
  std::int64_t length = 0;            // elements along this axis
  std::vector<std::int64_t> blocks;   // axis blocks present, in logical order
  std::vector<std::int64_t> offsets;  // local first element of each
};

struct SlotShape {
  std::vector<SlotAxis> axes;                // per flattened axis of the buffer (BufferTable::axes)
  std::vector<std::int64_t> strides;         // elements per step, per flattened axis
  std::vector<std::int64_t> opaque_strides;  // per dimension; 0 where the dimension is made of axes
  std::int64_t elements = 0;
};

// The blocks of an axis that ranges of its digits select, one range per digit, in the digits'
// order.
[[nodiscard]] std::vector<std::int64_t> blocks_along(const Blocks& blocks, int axis,
                                                     std::span<const Range> digits);

// The region (whole digits kAll) a slot that holds `holds` whole has while `block` is in it.
[[nodiscard]] Region slot_region(const Blocks& blocks, int buffer, const std::vector<bool>& holds,
                                 BlockId block);
[[nodiscard]] SlotShape slot_shape(const Blocks& blocks, int buffer, const Region& region);

// Where slots begin in an arena, in bytes: what TMA, copy engines and vector loads ask for at most.
constexpr std::int64_t kSlotAlignment = 256;

// Elements of the largest region a slot that holds `holds` whole can have.
[[nodiscard]] std::int64_t max_elements(const Blocks& blocks, int buffer,
                                        const std::vector<bool>& holds);

// A rectangle of elements inside a slot: for each flattened axis a local interval, and where the
// rectangle begins. `logical` is the first element's global position along each axis.
struct SlotBox {
  std::int64_t offset = 0;            // elements from the slot's start
  std::vector<std::int64_t> lengths;  // per flattened axis
  std::vector<std::int64_t> logical;  // per flattened axis
};

// Cuts disjoint boxes of blocks into rectangles that are contiguous locally and logically along
// every axis, in ascending order of offset; empty blocks vanish. The fewest for one box; rectangles
// of several boxes that continue each other are joined. Opaque dimensions belong whole to each.
// Requires: every block of the boxes lies in the shape's region.
[[nodiscard]] std::vector<SlotBox> rectangles(const Blocks& blocks, int buffer,
                                              const SlotShape& shape, std::span<const Box> boxes);

// True when the blocks fill one uninterrupted run of elements of the slot.
[[nodiscard]] bool is_contiguous(const Blocks& blocks, int buffer, const SlotShape& shape,
                                 std::span<const Box> boxes);

}  // namespace harpe
