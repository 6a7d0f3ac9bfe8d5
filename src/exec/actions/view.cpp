#include "exec/actions/view.h"

#include <algorithm>

#include "support/check.h"

namespace harpe::actions {
namespace {

std::vector<Patch> patches_at(const Setting& setting, const launch::LaidRef& ref, WriteMode mode) {
  const Alloc& alloc = setting.plan.allocs[ref.alloc.index()];
  const std::int64_t size = size_in_bytes(alloc.dtype);
  HP_CHECK(ref.layout->elements * size <= alloc.bytes,
           "`" + alloc.name + "` holds its largest region");
  std::byte* const base = setting.bases.address(alloc);
  std::vector<Patch> patches;
  patches.reserve(ref.layout->parts.size());
  for (const launch::RefLayout::Part& part : ref.layout->parts) {
    Patch& patch = patches.emplace_back(Patch{.data = base + part.offset * size,
                                              .dtype = alloc.dtype,
                                              .mode = mode,
                                              .span = part.span,
                                              .strides = part.strides,
                                              .occupancy = setting.occupancy.of(ref.alloc)});
    for (std::size_t axis = 0; axis < patch.span.size(); ++axis) {
      patch.span[axis].begin += ref.origin[axis];
      patch.span[axis].end += ref.origin[axis];
    }
  }
  return patches;
}

// The blocks of an axis that overlap the interval, as boxes over the axis's digits.
std::vector<Box> blocks_within(const Blocks& blocks, int axis, const Interval& part) {
  const AxisTable& table = blocks.axes()[static_cast<std::size_t>(axis)];
  std::vector<Box> boxes;
  for (std::int64_t block = 0; block < table.blocks; ++block) {
    const Interval along = blocks.interval(axis, block);
    if (along.size() == 0 || along.end <= part.begin || along.begin >= part.end) continue;
    Box& box = boxes.emplace_back(table.digits.size());
    std::int64_t rest = block;
    for (std::size_t i = box.size(); i-- > 0;) {
      const std::int32_t extent = blocks.digits()[static_cast<std::size_t>(table.digits[i])].extent;
      const auto value = static_cast<std::int32_t>(rest % extent);
      box[i] = {.lo = value, .hi = value + 1};
      rest /= extent;
    }
  }
  return boxes;
}

// The blocks that overlap the place.
Ref ref_of(const Blocks& blocks, const BufferTable& table, const launch::Place& place,
           WriteMode mode) {
  Ref ref;
  ref.alloc = place.alloc;
  ref.mode = mode;
  ref.boxes = {{}};
  for (std::size_t i = 0; i < table.axes.size(); ++i) {
    std::vector<Box> longer;
    for (const Box& prefix : ref.boxes) {
      for (const Box& along : blocks_within(blocks, table.axes[i], place.span[i])) {
        longer.push_back(prefix);
        longer.back().insert(longer.back().end(), along.begin(), along.end());
      }
    }
    ref.boxes = std::move(longer);
  }
  return ref;
}

// Clips the patch to the span; false if nothing is left.
bool clip(Patch& patch, const launch::Span& span) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < span.size(); ++axis) {
    const Interval whole = patch.span[axis];
    Interval& part = patch.span[axis];
    part = {.begin = std::max(whole.begin, span[axis].begin),
            .end = std::min(whole.end, span[axis].end)};
    if (part.size() <= 0) return false;
    offset += (part.begin - whole.begin) * patch.strides[axis];
  }
  patch.data += offset * size_in_bytes(patch.dtype);
  return true;
}

bool covers(const Participant& participant, const Patch& patch, const std::vector<Interval>& box) {
  for (std::size_t i = 0; i < participant.axes.size(); ++i) {
    const Interval& wanted = box[participant.axes[i]];
    if (patch.span[i].begin > wanted.begin || patch.span[i].end < wanted.end) return false;
  }
  return true;
}

bool meets(const Participant& participant, const Patch& patch, const std::vector<Interval>& box) {
  for (std::size_t i = 0; i < participant.axes.size(); ++i) {
    const Interval& wanted = box[participant.axes[i]];
    if (patch.span[i].begin >= wanted.end || patch.span[i].end <= wanted.begin) return false;
  }
  return true;
}

View view_of(const Participant& participant, const std::vector<Interval>& box) {
  const auto patch = std::ranges::find_if(
      participant.patches, [&](const Patch& p) { return covers(participant, p, box); });
  if (patch == participant.patches.end()) return {};
  View view{.data = patch->data,
            .dtype = patch->dtype,
            .mode = patch->mode,
            .strides = {},
            .used = patch->occupancy};
  view.strides.assign(box.size(), 0);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < participant.axes.size(); ++i) {
    const std::size_t axis = participant.axes[i];
    view.strides[axis] += patch->strides[i];
    offset += (box[axis].begin - patch->span[i].begin) * patch->strides[i];
  }
  view.data += offset * size_in_bytes(view.dtype);
  return view;
}

// The segments of the box along every axis, cut where a patch that overlaps the box begins or ends.
std::vector<std::vector<Interval>> segments(const std::vector<Interval>& box,
                                            std::span<const Participant> participants,
                                            std::span<const std::vector<std::int64_t>> cuts) {
  std::vector<std::vector<std::int64_t>> points(box.size());  // within the box
  const auto add = [&](std::size_t axis, std::int64_t point) {
    if (point > box[axis].begin && point < box[axis].end) points[axis].push_back(point);
  };
  for (std::size_t axis = 0; axis < std::min(box.size(), cuts.size()); ++axis) {
    for (const std::int64_t point : cuts[axis]) add(axis, point);
  }
  for (const Participant& participant : participants) {
    for (const Patch& patch : participant.patches) {
      if (!meets(participant, patch, box)) continue;
      for (std::size_t i = 0; i < participant.axes.size(); ++i) {
        add(participant.axes[i], patch.span[i].begin);
        add(participant.axes[i], patch.span[i].end);
      }
    }
  }
  std::vector<std::vector<Interval>> result(box.size());
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    std::ranges::sort(points[axis]);
    std::int64_t begin = box[axis].begin;
    for (const std::int64_t point : points[axis]) {
      if (point == begin) continue;
      result[axis].push_back({.begin = begin, .end = point});
      begin = point;
    }
    result[axis].push_back({.begin = begin, .end = box[axis].end});
  }
  return result;
}

}  // namespace

std::byte* Bases::address(const Alloc& alloc) const {
  HP_CHECK(alloc.rank.valid() && alloc.rank.index() < arenas.size(),
           "rank of `" + alloc.name + "`");
  HP_CHECK(alloc.offset >= 0 && alloc.offset % size_in_bytes(alloc.dtype) == 0,
           "`" + alloc.name + "` begins at an element");
  const auto elsewhere = apart.empty() ? apart.end() : apart.find({alloc.rank, alloc.name});
  return elsewhere != apart.end() ? elsewhere->second : arenas[alloc.rank.index()] + alloc.offset;
}

std::vector<AxisKey> keys_of(const BufferTable& buffer) {
  std::vector<AxisKey> keys(buffer.axes.begin(), buffer.axes.end());
  AxisKey opaque = 0;
  for (const DimTable& dim : buffer.dims) {
    if (dim.axes.empty()) keys.push_back(--opaque);
  }
  return keys;
}

std::int64_t length_of(const Blocks& blocks, const BufferTable& buffer, AxisKey key) {
  if (key >= 0) return blocks.axes()[static_cast<std::size_t>(key)].size;
  for (const DimTable& dim : buffer.dims) {
    if (dim.axes.empty() && ++key == 0) return dim.opaque;
  }
  HP_CHECK(false, "an opaque dimension of `" + buffer.name + "`");
  return 0;
}

std::vector<Patch> patches_of(const Setting& setting, const Ref& ref) {
  return patches_at(setting, setting.layouts.of(ref), ref.mode);
}

std::vector<Patch> patches_of_home(const Setting& setting, AllocId home) {
  return patches_at(setting, setting.layouts.of_home(home), WriteMode::Read);
}

std::vector<Patch> patches_of(const Setting& setting, const launch::Place& place, WriteMode mode) {
  const auto buffer = static_cast<std::size_t>(setting.layouts.buffer_of(place.alloc));
  const BufferTable& table = setting.blocks.buffers()[buffer];
  if (place.span.size() != keys_of(table).size()) return {};
  const Ref ref = ref_of(setting.blocks, table, place, mode);
  if (ref.boxes.empty()) return {};
  std::vector<Patch> patches = patches_at(setting, setting.layouts.of(ref), mode);
  std::erase_if(patches, [&](Patch& patch) { return !clip(patch, place.span); });
  std::int64_t found = 0;
  for (const Patch& patch : patches) found += launch::count_elements(patch.span);
  return found == launch::count_elements(place.span) ? patches : std::vector<Patch>();
}

std::vector<Cell> cut(const std::vector<Interval>& box, std::span<const Participant> participants,
                      std::vector<std::vector<std::int64_t>> cuts,
                      const std::optional<RaggedAxis>& ragged) {
  const bool empty = std::ranges::any_of(box, [](const Interval& i) { return i.size() <= 0; });
  if (empty) return {};
  if (ragged) ragged->add_cuts(cuts, box);
  std::vector<std::vector<Interval>> spans = {{}};
  spans.front().reserve(box.size());
  for (const std::vector<Interval>& along : segments(box, participants, cuts)) {
    std::vector<std::vector<Interval>> longer;
    longer.reserve(spans.size() * along.size());
    for (std::vector<Interval>& prefix : spans) {
      for (std::size_t i = 0; i < along.size(); ++i) {
        longer.push_back(i + 1 < along.size() ? prefix : std::move(prefix));
        longer.back().push_back(along[i]);
      }
    }
    spans = std::move(longer);
  }
  std::vector<Cell> cells;
  cells.reserve(spans.size());
  for (std::vector<Interval>& span : spans) {
    Cell cell;
    for (const Participant& participant : participants) {
      cell.views.push_back(view_of(participant, span));
    }
    if (ragged) {
      cell.slot_axis = ragged->slot;
      cell.rows_before = ragged->rows_before(span);
      cell.rows_taken = ragged->taken;
      for (View& view : cell.views) {
        if (view.used != nullptr) view.used += ragged->number_of(span);
      }
    }
    cell.span = std::move(span);
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace harpe::actions
