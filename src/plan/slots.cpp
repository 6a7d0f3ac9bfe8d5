#include "plan/slots.h"

#include <algorithm>
#include <numeric>

namespace harpe {
namespace {

std::size_t index_of(int i) { return static_cast<std::size_t>(i); }

// The digits of one flattened axis within a buffer's digit list.
struct AxisDigits {
  int axis = 0;           // into Blocks::axes
  std::size_t first = 0;  // position of its first digit in BufferTable::digits
  std::vector<std::int32_t> extents;
};

std::vector<AxisDigits> axis_digits(const Blocks& blocks, int buffer) {
  std::vector<AxisDigits> slices;
  std::size_t first = 0;
  for (const int axis : blocks.buffers()[index_of(buffer)].axes) {
    AxisDigits slice{.axis = axis, .first = first, .extents = {}};
    for (const int digit : blocks.axes()[index_of(axis)].digits) {
      slice.extents.push_back(blocks.digits()[index_of(digit)].extent);
    }
    first += slice.extents.size();
    slices.push_back(std::move(slice));
  }
  return slices;
}

// The blocks of one axis in a region, in logical order.
std::vector<std::int64_t> blocks_along(const Blocks& blocks, const AxisDigits& slice,
                                       const Region& region) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < slice.extents.size(); ++i) {
    const std::int32_t pinned = region[slice.first + i];
    ranges.push_back(pinned == kAll ? Range{.lo = 0, .hi = slice.extents[i]}
                                    : Range{.lo = pinned, .hi = pinned + 1});
  }
  std::vector<std::int64_t> selected = blocks_along(blocks, slice.axis, ranges);
  const std::vector<std::int64_t>& logical = blocks.axes()[index_of(slice.axis)].logical;
  std::ranges::sort(selected, {},
                    [&](std::int64_t block) { return logical[static_cast<std::size_t>(block)]; });
  return selected;
}

bool selects(const Box& box, const AxisDigits& slice, std::int64_t axis_block) {
  for (std::size_t i = slice.extents.size(); i-- > 0;) {
    const auto value = static_cast<std::int32_t>(axis_block % slice.extents[i]);
    axis_block /= slice.extents[i];
    const Range range = box[slice.first + i];
    if (value < range.lo || value >= range.hi) return false;
  }
  return true;
}

// An interval along one axis, in local and in logical positions.
struct Run {
  std::int64_t local = 0;
  std::int64_t logical = 0;
  std::int64_t length = 0;
};

bool is_followed_by(const Run& run, const Run& next) {
  return run.local + run.length == next.local && run.logical + run.length == next.logical;
}

// The part of an axis in a box, as a few runs, each contiguous locally and logically.
std::vector<Run> runs_along(const Blocks& blocks, const AxisDigits& slice, const SlotAxis& axis,
                            const Box& box) {
  std::int64_t wanted = 1;
  for (std::size_t i = 0; i < slice.extents.size(); ++i) {
    const Range range = box[slice.first + i];
    wanted *= std::max(range.hi - range.lo, 0);
  }
  std::int64_t found = 0;
  std::vector<Run> runs;
  for (std::size_t i = 0; i < axis.blocks.size(); ++i) {
    if (!selects(box, slice, axis.blocks[i])) continue;
    ++found;
    const Interval logical = blocks.interval(slice.axis, axis.blocks[i]);
    if (logical.size() == 0) continue;
    const Run run{.local = axis.offsets[i], .logical = logical.begin, .length = logical.size()};
    if (!runs.empty() && is_followed_by(runs.back(), run)) {
      runs.back().length += run.length;
    } else {
      runs.push_back(run);
    }
  }
  HP_CHECK(found == wanted, "a box names blocks that its slot does not hold along axis `" +
                                blocks.axes()[index_of(slice.axis)].name + "`");
  return runs;
}

using Rectangle = std::vector<Run>;  // one run per flattened axis

// Appends every choice of one run per axis; the last axis varies fastest.
void append_product(std::vector<Rectangle>& rectangles, const std::vector<std::vector<Run>>& runs) {
  std::vector<Rectangle> product = {{}};
  for (const std::vector<Run>& along : runs) {
    std::vector<Rectangle> longer;
    longer.reserve(product.size() * along.size());
    for (const Rectangle& prefix : product) {
      for (const Run& run : along) {
        longer.push_back(prefix);
        longer.back().push_back(run);
      }
    }
    product = std::move(longer);
  }
  rectangles.insert(rectangles.end(), product.begin(), product.end());
}

// Within a slot, local positions determine logical ones, so comparing local runs suffices.
bool differ_only_along(const Rectangle& a, const Rectangle& b, std::size_t axis) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (k != axis && (a[k].local != b[k].local || a[k].length != b[k].length)) return false;
  }
  return true;
}

// Merges rectangles that are adjacent along `axis`.
bool merge_along(std::vector<Rectangle>& rectangles, std::size_t axis) {
  std::ranges::sort(rectangles, [&](const Rectangle& a, const Rectangle& b) {
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (k == axis) continue;
      if (a[k].local != b[k].local) return a[k].local < b[k].local;
      if (a[k].length != b[k].length) return a[k].length < b[k].length;
    }
    return a[axis].local < b[axis].local;
  });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < rectangles.size(); ++i) {
    Rectangle& last = rectangles[kept];
    const Rectangle& next = rectangles[i];
    if (differ_only_along(last, next, axis) && is_followed_by(last[axis], next[axis])) {
      last[axis].length += next[axis].length;
    } else {
      rectangles[++kept] = next;
    }
  }
  const bool merged = kept + 1 < rectangles.size();
  if (merged) rectangles.resize(kept + 1);
  return merged;
}

// The rectangles of one box are already minimal: its runs are maximal along each axis. Rectangles
// of several boxes may be adjacent. A merge along one axis can enable one along another, hence the
// loop.
void merge(std::vector<Rectangle>& rectangles, std::size_t axes) {
  for (bool merged = true; merged;) {
    merged = false;
    for (std::size_t axis = axes; axis-- > 0;) merged = merge_along(rectangles, axis) || merged;
  }
}

}  // namespace

Region slot_region(const Blocks& blocks, int buffer, const std::vector<bool>& holds,
                   BlockId block) {
  Region region = blocks.region_of(blocks.buffers()[index_of(buffer)].digits, block);
  HP_CHECK(holds.size() == region.size(), "one `holds` per digit of the buffer");
  for (std::size_t i = 0; i < region.size(); ++i) {
    if (holds[i]) region[i] = kAll;
  }
  return region;
}

std::vector<std::int64_t> blocks_along(const Blocks& blocks, int axis,
                                       std::span<const Range> digits) {
  const std::vector<int>& own = blocks.axes()[index_of(axis)].digits;
  std::vector<std::int64_t> selected = {0};
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::int32_t extent = blocks.digits()[index_of(own[i])].extent;
    std::vector<std::int64_t> longer;
    for (const std::int64_t prefix : selected) {
      for (std::int32_t value = digits[i].lo; value < digits[i].hi; ++value) {
        longer.push_back(prefix * extent + value);
      }
    }
    selected = std::move(longer);
  }
  return selected;
}

SlotShape slot_shape(const Blocks& blocks, int buffer, const Region& region) {
  const BufferTable& table = blocks.buffers()[index_of(buffer)];
  HP_CHECK(region.size() == table.digits.size(), "one value per digit of the buffer");
  SlotShape shape;
  for (const AxisDigits& slice : axis_digits(blocks, buffer)) {
    SlotAxis axis;
    axis.blocks = blocks_along(blocks, slice, region);
    for (const std::int64_t block : axis.blocks) {
      axis.offsets.push_back(axis.length);
      axis.length += blocks.interval(slice.axis, block).size();
    }
    shape.axes.push_back(std::move(axis));
  }
  shape.strides.resize(shape.axes.size());
  shape.opaque_strides.resize(table.dims.size());
  shape.elements = 1;
  std::size_t axis = shape.axes.size();
  for (std::size_t dim = table.dims.size(); dim-- > 0;) {
    if (table.dims[dim].axes.empty()) {
      shape.opaque_strides[dim] = shape.elements;
      shape.elements *= table.dims[dim].opaque;
    }
    for (std::size_t i = table.dims[dim].axes.size(); i-- > 0;) {
      --axis;
      shape.strides[axis] = shape.elements;
      shape.elements *= shape.axes[axis].length;
    }
  }
  return shape;
}

std::int64_t max_elements(const Blocks& blocks, int buffer, const std::vector<bool>& holds) {
  const BufferTable& table = blocks.buffers()[index_of(buffer)];
  HP_CHECK(holds.size() == table.digits.size(), "one `holds` per digit of the buffer");
  std::int64_t elements = 1;
  for (const DimTable& dim : table.dims) elements *= dim.opaque;
  // Each digit belongs to one axis, so the digits of different axes vary independently, and the
  // largest product is the product of the largest lengths.
  for (const AxisDigits& slice : axis_digits(blocks, buffer)) {
    const std::int64_t count = blocks.axes()[index_of(slice.axis)].blocks;
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(count), 0);
    for (std::int64_t block = 0; block < count; ++block) {
      // The block's values of digits not held, with all others 0, identify its region.
      std::int64_t key = 0;
      std::int64_t rest = block;
      std::int64_t weight = 1;
      for (std::size_t i = slice.extents.size(); i-- > 0;) {
        if (!holds[slice.first + i]) key += rest % slice.extents[i] * weight;
        rest /= slice.extents[i];
        weight *= slice.extents[i];
      }
      lengths[static_cast<std::size_t>(key)] += blocks.interval(slice.axis, block).size();
    }
    elements *= *std::ranges::max_element(lengths);
  }
  return elements;
}

std::vector<SlotBox> rectangles(const Blocks& blocks, int buffer, const SlotShape& shape,
                                std::span<const Box> boxes) {
  const std::vector<AxisDigits> slices = axis_digits(blocks, buffer);
  std::vector<Rectangle> parts;
  for (const Box& box : boxes) {
    std::vector<std::vector<Run>> runs;
    for (std::size_t k = 0; k < slices.size(); ++k) {
      runs.push_back(runs_along(blocks, slices[k], shape.axes[k], box));
    }
    append_product(parts, runs);
  }
  if (boxes.size() > 1) merge(parts, slices.size());
  std::vector<SlotBox> result;
  result.reserve(parts.size());
  for (const Rectangle& part : parts) {
    SlotBox box;
    for (std::size_t k = 0; k < part.size(); ++k) {
      box.offset += part[k].local * shape.strides[k];
      box.lengths.push_back(part[k].length);
      box.logical.push_back(part[k].logical);
    }
    result.push_back(std::move(box));
  }
  std::ranges::sort(result, {}, &SlotBox::offset);
  return result;
}

bool is_contiguous(const Blocks& blocks, int buffer, const SlotShape& shape,
                   std::span<const Box> boxes) {
  const BufferTable& table = blocks.buffers()[index_of(buffer)];
  std::int64_t opaque = 1;
  std::int64_t opaque_reach = 0;  // distance from the first to the last opaque element
  for (std::size_t dim = 0; dim < table.dims.size(); ++dim) {
    opaque *= table.dims[dim].opaque;
    opaque_reach += (table.dims[dim].opaque - 1) * shape.opaque_strides[dim];
  }
  std::int64_t covered = 0;
  std::int64_t first = shape.elements;
  std::int64_t last = -1;
  for (const SlotBox& box : rectangles(blocks, buffer, shape, boxes)) {
    std::int64_t volume = opaque;
    std::int64_t reach = opaque_reach;
    for (std::size_t k = 0; k < box.lengths.size(); ++k) {
      volume *= box.lengths[k];
      reach += (box.lengths[k] - 1) * shape.strides[k];
    }
    covered += volume;
    first = std::min(first, box.offset);
    last = std::max(last, box.offset + reach);
  }
  // The boxes are disjoint, so there is no gap if they have as many elements as the span.
  return covered == 0 || last - first + 1 == covered;
}

}  // namespace harpe
