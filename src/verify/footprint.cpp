#include "verify/footprint.h"

#include <algorithm>

namespace harpe::verifier {
namespace {

// For one axis: the elements in a content, for every choice of its digits that are not held.
// Indexed by axis block; only blocks whose held digits are 0 carry a sum.
std::vector<std::int64_t> lengths_along(const Model& model, const Footprint& footprint,
                                        const AxisView& view) {
  const BufferModel& buffer = model.buffers[static_cast<std::size_t>(footprint.buffer)];
  const AxisModel& axis = model.axes[static_cast<std::size_t>(view.axis)];
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(axis.blocks), 0);
  for (std::int64_t block = 0; block < axis.blocks; ++block) {
    std::int64_t content = block;
    for (std::size_t i = 0; i < view.strides.size(); ++i) {
      if (view.strides[i] == 0 || !footprint.holds[i]) continue;
      content -= block / view.strides[i] % buffer.radix.extents[i] * view.strides[i];
    }
    const auto at = static_cast<std::size_t>(block);
    lengths[static_cast<std::size_t>(content)] += axis.end[at] - axis.begin[at];
  }
  return lengths;
}

}  // namespace

Footprint make_footprint(const Model& model, int buffer, const std::vector<bool>& holds) {
  const BufferModel& table = model.buffers[static_cast<std::size_t>(buffer)];
  Footprint out{.buffer = buffer,
                .holds = holds,
                .cell_strides = std::vector<std::int64_t>(holds.size(), 0),
                .content_strides = std::vector<std::int64_t>(holds.size(), 0),
                .cells = 1,
                .contents = 1,
                .most_elements = table.opaque};
  for (std::size_t i = holds.size(); i-- > 0;) {
    std::int64_t& count = holds[i] ? out.cells : out.contents;
    (holds[i] ? out.cell_strides : out.content_strides)[i] = count;
    count *= table.radix.extents[i];
  }
  for (const AxisView& view : table.axes) {
    out.most_elements *= std::ranges::max(lengths_along(model, out, view));
  }
  return out;
}

std::int64_t content_elements(const Model& model, const Footprint& footprint, std::int64_t block) {
  const BufferModel& table = model.buffers[static_cast<std::size_t>(footprint.buffer)];
  std::vector<std::int32_t> point = point_of(table.radix, block);
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (footprint.holds[i]) point[i] = 0;
  }
  std::int64_t elements = table.opaque;
  for (const AxisView& view : table.axes) {
    elements *= lengths_along(model, footprint,
                              view)[static_cast<std::size_t>(product(view.strides, point))];
  }
  return elements;
}

}  // namespace harpe::verifier
