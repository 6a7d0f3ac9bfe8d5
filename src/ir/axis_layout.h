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

// Which positions of an axis each rank holds at home.
enum class AxisLayout : std::uint8_t {
  Whole,       // every rank holds all positions
  Contiguous,  // each rank holds one range, in rank order
  Zigzag,      // each rank holds a range from the front and the same one counted from the back
  Other,
};
[[nodiscard]] std::string_view print(AxisLayout layout);

// The positions along an axis that these digit values select: ascending, adjacent ranges joined.
[[nodiscard]] std::vector<Interval> positions_in(const Blocks& blocks, int axis,
                                                 std::span<const std::int32_t> values);

struct HeldAxis {
  std::string axis;
  AxisLayout layout = AxisLayout::Whole;
  bool is_masked = false;  // a mask depends on its positions
};
// The axes of inputs and outputs, in order of declaration. A buffer that every rank holds whole
// along an axis does not count if other buffers divide the axis. If those differ, the layout is
// Other.
[[nodiscard]] std::vector<HeldAxis> find_held_axes(const Program& program, const Blocks& blocks);

}  // namespace harpe
