#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"

namespace harpe {

// The layout of blocks inside a slot (D15): dense in the buffer's dimension order, blocks at their
// true lengths, in logical order along every axis. The shape depends on the digits that the slot
// does not hold whole; any block in the slot determines these.

// One axis of a slot's current content.
struct SlotAxis {
  std::int64_t length = 0;            // elements along this axis
  std::vector<std::int64_t> blocks;   // axis blocks present, in logical order
  std::vector<std::int64_t> offsets;  // the first local element of each block
};

struct SlotShape {
  std::vector<SlotAxis> axes;                // per flattened axis of the buffer (BufferTable::axes)
  std::vector<std::int64_t> strides;         // elements per step, per flattened axis
  std::vector<std::int64_t> opaque_strides;  // per dimension; 0 for a dimension made of axes
  std::int64_t elements = 0;
};

// The blocks of an axis that these ranges select, one range per digit, in the order of the digits.
[[nodiscard]] std::vector<std::int64_t> blocks_along(const Blocks& blocks, int axis,
                                                     std::span<const Range> digits);

// The region (kAll for whole digits) of a slot that holds `holds` whole and contains `block`.
[[nodiscard]] Region slot_region(const Blocks& blocks, int buffer, const std::vector<bool>& holds,
                                 BlockId block);
[[nodiscard]] SlotShape slot_shape(const Blocks& blocks, int buffer, const Region& region);

// Alignment of slots in an arena, in bytes: the largest that TMA, copy engines and vector loads
// need.
constexpr std::int64_t kSlotAlignment = 256;

// Elements of the largest region of a slot that holds `holds` whole.
[[nodiscard]] std::int64_t max_elements(const Blocks& blocks, int buffer,
                                        const std::vector<bool>& holds);

// A rectangle of elements inside a slot: its offset and its length along each flattened axis.
// `logical` is the global position of the first element along each axis.
struct SlotBox {
  std::int64_t offset = 0;            // elements from the slot's start
  std::vector<std::int64_t> lengths;  // per flattened axis
  std::vector<std::int64_t> logical;  // per flattened axis
};

// Cuts disjoint boxes of blocks into rectangles that are contiguous locally and logically along
// every axis, in ascending order of offset; empty blocks vanish. The number is minimal for one box;
// adjacent rectangles of several boxes are merged. Opaque dimensions belong whole to each
// rectangle. Requires: every block of the boxes lies in the shape's region.
[[nodiscard]] std::vector<SlotBox> rectangles(const Blocks& blocks, int buffer,
                                              const SlotShape& shape, std::span<const Box> boxes);

// True if the blocks fill one contiguous range of elements of the slot.
[[nodiscard]] bool is_contiguous(const Blocks& blocks, int buffer, const SlotShape& shape,
                                 std::span<const Box> boxes);

}  // namespace harpe
