#include "plan/ref_layouts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "plan/slots.h"

namespace harpe::launch {
namespace {

// Cuts a box into one box per content of the slot: one value of each digit that is not held whole.
std::vector<Box> cut_by_contents(const std::vector<bool>& holds, const Box& box) {
  std::vector<Box> all = {box};
  for (std::size_t digit = 0; digit < box.size(); ++digit) {
    if (holds[digit] || box[digit].hi == box[digit].lo + 1) continue;
    std::vector<Box> cut;
    for (const Box& one : all) {
      for (std::int32_t value = box[digit].lo; value < box[digit].hi; ++value) {
        cut.push_back(one);
        cut.back()[digit] = {.lo = value, .hi = value + 1};
      }
    }
    all = std::move(cut);
  }
  return all;
}

Region content_of(const std::vector<bool>& holds, const Box& box) {
  Region region(box.size(), kAll);
  for (std::size_t digit = 0; digit < box.size(); ++digit) {
    if (!holds[digit]) region[digit] = box[digit].lo;
  }
  return region;
}

RefLayout::Part part_of(const BufferTable& table, const SlotShape& shape, const SlotBox& box) {
  RefLayout::Part part{.span = {}, .offset = box.offset, .strides = shape.strides, .outermost = {}};
  for (std::size_t axis = 0; axis < box.lengths.size(); ++axis) {
    const std::int64_t first = box.logical[axis];
    part.span.push_back({.begin = first, .end = first + box.lengths[axis]});
  }
  for (std::size_t dim = 0; dim < table.dims.size(); ++dim) {
    if (!table.dims[dim].axes.empty()) continue;
    part.span.push_back({.begin = 0, .end = table.dims[dim].opaque});
    part.strides.push_back(shape.opaque_strides[dim]);
  }
  part.outermost.resize(part.strides.size());
  std::iota(part.outermost.begin(), part.outermost.end(), std::size_t{0});
  std::ranges::stable_sort(part.outermost, std::greater(),
                           [&](std::size_t axis) { return part.strides[axis]; });
  return part;
}

// The length of the blocks if they are equally long and in order; else 0.
std::int64_t even_length(const AxisTable& axis) {
  const std::int64_t length = axis.size / std::max<std::int64_t>(axis.blocks, 1);
  if (length * axis.blocks != axis.size) return 0;
  for (std::int64_t block = 0; block < axis.blocks; ++block) {
    const auto at = static_cast<std::size_t>(block);
    if (axis.logical[at] != block || axis.starts[at] != block * length) return 0;
  }
  return length;
}

}  // namespace

bool contains(const Span& whole, const Span& part) {
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
    if (whole[axis].begin > part[axis].begin || whole[axis].end < part[axis].end) return false;
  }
  return true;
}

std::int64_t count_elements(const Span& span) {
  std::int64_t count = 1;
  for (const Interval& along : span) count *= along.size();
  return count;
}

bool is_held(const std::vector<Place>& places, std::size_t index) {
  const Place& place = places[index];
  return std::any_of(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(index),
                     [&](const Place& earlier) {
                       return earlier.alloc == place.alloc && contains(earlier.span, place.span);
                     });
}

bool is_ragged(const Plan& plan, const Blocks& blocks, int buffer) {
  const std::vector<int>& axes = blocks.buffers()[static_cast<std::size_t>(buffer)].axes;
  return std::ranges::any_of(axes, [&](int axis) {
    const std::string& name = blocks.axes()[static_cast<std::size_t>(axis)].name;
    const std::string& owner = find_axis(plan.program, name)->of;
    return !owner.empty() && std::ranges::find(axes, blocks.find_axis(owner)) != axes.end();
  });
}

const RefLayout::Part* LaidRef::find(const Span& span, std::size_t likely) const {
  const std::vector<RefLayout::Part>& parts = layout->parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t at = likely + i < parts.size() ? likely + i : likely + i - parts.size();
    const RefLayout::Part& part = parts[at];
    bool holds = true;
    for (std::size_t axis = 0; holds && axis < span.size(); ++axis) {
      holds = part.span[axis].begin + origin[axis] <= span[axis].begin &&
              part.span[axis].end + origin[axis] >= span[axis].end;
    }
    if (holds) return &part;
  }
  return nullptr;
}

std::vector<Span> LaidRef::spans() const {
  std::vector<Span> spans;
  for (const RefLayout::Part& part : layout->parts) {
    Span& span = spans.emplace_back(part.span);
    for (std::size_t axis = 0; axis < span.size(); ++axis) {
      span[axis].begin += origin[axis];
      span[axis].end += origin[axis];
    }
  }
  return spans;
}

std::int64_t LaidRef::elements() const {
  std::int64_t count = 0;
  for (const RefLayout::Part& part : layout->parts) count += count_elements(part.span);
  return count;
}

std::size_t WordsHash::operator()(const std::vector<std::int32_t>& words) const {
  std::size_t hash = 0;
  for (const std::int32_t word : words) {
    hash = (hash ^ static_cast<std::uint32_t>(word)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32U;
  }
  return hash;
}

RefLayouts::RefLayouts(const Plan& plan, const Blocks& blocks) : plan_(plan), blocks_(blocks) {
  find_steps();
  index_axes();
  struct Kind {
    const Alloc* first = nullptr;
    int buffer = 0;
  };
  std::vector<Kind> kinds;  // one per distinct kind
  for (const Alloc& alloc : plan.allocs) {
    const auto kind = std::ranges::find_if(kinds, [&](const Kind& known) {
      return known.first->buffer == alloc.buffer && known.first->holds == alloc.holds;
    });
    kinds_.push_back(static_cast<std::int32_t>(kind - kinds.begin()));
    buffers_.push_back(kind == kinds.end() ? blocks.find_buffer(alloc.buffer) : kind->buffer);
    if (kind == kinds.end()) kinds.push_back({.first = &alloc, .buffer = buffers_.back()});
  }
}

void RefLayouts::find_steps() {
  steps_.assign(blocks_.digits().size(), 0);
  for (const AxisTable& axis : blocks_.axes()) {
    std::int64_t step = even_length(axis);
    for (std::size_t i = axis.digits.size(); i-- > 0;) {
      const auto digit = static_cast<std::size_t>(axis.digits[i]);
      steps_[digit] = step;
      step *= blocks_.digits()[digit].extent;
    }
  }
}

void RefLayouts::index_axes() {
  for (const BufferTable& table : blocks_.buffers()) {
    const auto opaque =
        std::ranges::count_if(table.dims, [](const DimTable& dim) { return dim.axes.empty(); });
    axis_counts_.push_back(table.axes.size() + static_cast<std::size_t>(opaque));
    std::vector<int>& axes = axes_.emplace_back();
    for (const int digit : table.digits) {
      const int axis = blocks_.digits()[static_cast<std::size_t>(digit)].axis;
      axes.push_back(static_cast<int>(std::ranges::find(table.axes, axis) - table.axes.begin()));
    }
  }
}

// Builds the key of a layout. Digits that the slot does not hold whole only move the origin.
void RefLayouts::make_key(const Ref& ref, LaidRef& laid) {
  const Alloc& alloc = plan_.allocs[ref.alloc.index()];
  const auto buffer = static_cast<std::size_t>(buffer_of(ref.alloc));
  const BufferTable& table = blocks_.buffers()[buffer];
  laid.origin.assign(axis_counts_[buffer], 0);
  key_.assign(1, kinds_[ref.alloc.index()]);
  for (std::size_t digit = 0; digit < table.digits.size() && !ref.boxes.empty(); ++digit) {
    const std::int64_t step = step_of(table.digits[digit]);
    const bool is_fixed = alloc.holds[digit] || step == 0;
    const std::int32_t shift = is_fixed ? 0 : ref.boxes.front()[digit].lo;
    laid.origin[static_cast<std::size_t>(axes_[buffer][digit])] += shift * step;
    for (const Box& box : ref.boxes) {
      key_.push_back(box[digit].lo - shift);
      key_.push_back(box[digit].hi - shift);
    }
  }
}

LaidRef RefLayouts::of(const Ref& ref) {
  LaidRef laid{.alloc = ref.alloc, .layout = nullptr, .origin = {}};
  make_key(ref, laid);
  const auto known = layouts_.find(key_);
  if (known != layouts_.end()) {
    laid.layout = &known->second;
    return laid;
  }
  RefLayout layout = make_layout(ref);
  layout.shape = shape_of(layout);
  for (RefLayout::Part& part : layout.parts) {
    for (std::size_t axis = 0; axis < part.span.size(); ++axis) {
      part.span[axis].begin -= laid.origin[axis];
      part.span[axis].end -= laid.origin[axis];
    }
  }
  laid.layout = &layouts_.emplace(key_, std::move(layout)).first->second;
  return laid;
}

std::int32_t RefLayouts::shape_of(const RefLayout& layout) {
  std::vector<std::int64_t> shape;
  for (const RefLayout::Part& part : layout.parts) {
    shape.push_back(part.offset - layout.begin());
    shape.insert(shape.end(), part.strides.begin(), part.strides.end());
    for (const Interval& along : part.span) shape.push_back(along.size());
  }
  const auto next = static_cast<std::int32_t>(shapes_.size());
  return shapes_.try_emplace(std::move(shape), next).first->second;
}

RefLayout RefLayouts::make_layout(const Ref& ref) const {
  const Alloc& alloc = plan_.allocs[ref.alloc.index()];
  const int buffer = buffer_of(ref.alloc);
  const BufferTable& table = blocks_.buffers()[static_cast<std::size_t>(buffer)];
  std::map<Region, std::vector<Box>> contents;
  for (const Box& whole : ref.boxes) {
    for (Box& box : cut_by_contents(alloc.holds, whole)) {
      contents[content_of(alloc.holds, box)].push_back(std::move(box));
    }
  }
  RefLayout layout;
  for (const auto& [region, boxes] : contents) {
    const SlotShape shape = slot_shape(blocks_, buffer, region);
    layout.elements = std::max(layout.elements, shape.elements);
    for (const SlotBox& box : rectangles(blocks_, buffer, shape, boxes)) {
      layout.parts.push_back(part_of(table, shape, box));
    }
  }
  return layout;
}

const LaidRef& RefLayouts::of_home(AllocId home) {
  const auto known = homes_.find(home);
  if (known != homes_.end()) return known->second;
  const int buffer = buffer_of(home);
  const BufferTable& table = blocks_.buffers()[static_cast<std::size_t>(buffer)];
  const Region region = blocks_.home(buffer, plan_.allocs[home.index()].rank);
  Ref whole;
  whole.alloc = home;
  Box& box = whole.boxes.emplace_back();
  for (std::size_t i = 0; i < region.size(); ++i) {
    const auto digit = static_cast<std::size_t>(table.digits[i]);
    box.push_back(region[i] == kAll ? Range{.lo = 0, .hi = blocks_.digits()[digit].extent}
                                    : Range{.lo = region[i], .hi = region[i] + 1});
  }
  return homes_.emplace(home, of(whole)).first->second;
}

std::optional<Place> RefLayouts::place_of(const Ref& ref) {
  std::vector<Span> spans = of(ref).spans();
  if (spans.size() != 1) return std::nullopt;
  return Place{.alloc = ref.alloc, .span = std::move(spans.front())};
}

}  // namespace harpe::launch
