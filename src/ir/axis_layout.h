#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/blocks.h"
#include "ir/program.h"

namespace harpe {

// Which positions of an axis the ranks hold at home.
enum class AxisLayout : std::uint8_t {
  Whole,       // every rank holds all of them
  Contiguous,  // each a range, in the order of the ranks
  Zigzag,      // each a range from the front and the same one counted from the back
  Other,
};
[[nodiscard]] std::string_view print(AxisLayout layout);

// The positions along an axis that the values of its digits select: ascending, neighbours joined.
[[nodiscard]] std::vector<Interval> positions_in(const Blocks& blocks, int axis,
                                                 std::span<const std::int32_t> values);

struct HeldAxis {
  std::string axis;
  AxisLayout layout = AxisLayout::Whole;
  bool is_masked = false;  // a mask goes by its positions
};
// Of the axes of inputs and outputs, as declared. A buffer that every rank holds whole along an
// axis says nothing of it where others are divided; where those differ, it is Other.
[[nodiscard]] std::vector<HeldAxis> find_held_axes(const Program& program, const Blocks& blocks);

}  // namespace harpe
