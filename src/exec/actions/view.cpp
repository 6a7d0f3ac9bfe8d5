#include "exec/actions/view.h"

#include <algorithm>
#include <map>
#include <set>

#include "plan/slots.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

int index_of_buffer(const Blocks& blocks, const std::string& name) {
  const int buffer = blocks.find_buffer(name);
  HP_CHECK(buffer >= 0, "buffer `" + name + "` of the plan");
  return buffer;
}

// One box per value of the digits a slot does not hold whole: each lies in one region of the slot.
std::vector<Box> pin(const std::vector<bool>& holds, const Box& box) {
  std::vector<Box> pinned = {box};
  for (std::size_t digit = 0; digit < box.size(); ++digit) {
    if (holds[digit]) continue;
    std::vector<Box> longer;
    for (const Box& prefix : pinned) {
      for (std::int32_t value = box[digit].lo; value < box[digit].hi; ++value) {
        longer.push_back(prefix);
        longer.back()[digit] = {.lo = value, .hi = value + 1};
      }
    }
    pinned = std::move(longer);
  }
  return pinned;
}

Region region_around(const std::vector<bool>& holds, const Box& box) {
  Region region(box.size(), kAll);
  for (std::size_t digit = 0; digit < box.size(); ++digit) {
    if (!holds[digit]) region[digit] = box[digit].lo;
  }
  return region;
}

Patch make_patch(const BufferTable& table, const SlotShape& shape, const SlotBox& box,
                 std::byte* base, DType dtype) {
  Patch patch;
  patch.dtype = dtype;
  patch.data = base + box.offset * size_in_bytes(dtype);
  patch.strides = shape.strides;
  for (std::size_t axis = 0; axis < box.lengths.size(); ++axis) {
    patch.span.push_back(
        {.begin = box.logical[axis], .end = box.logical[axis] + box.lengths[axis]});
  }
  for (std::size_t dim = 0; dim < table.dims.size(); ++dim) {
    if (!table.dims[dim].axes.empty()) continue;
    patch.span.push_back({.begin = 0, .end = table.dims[dim].opaque});
    patch.strides.push_back(shape.opaque_strides[dim]);
  }
  return patch;
}

std::vector<Patch> patches_in(const Setting& setting, const Alloc& alloc, const Region& region,
                              const std::vector<Box>& boxes) {
  const int buffer = index_of_buffer(setting.blocks, alloc.buffer);
  const BufferTable& table = setting.blocks.buffers()[static_cast<std::size_t>(buffer)];
  const SlotShape shape = slot_shape(setting.blocks, buffer, region);
  HP_CHECK(shape.elements * size_in_bytes(alloc.dtype) <= alloc.bytes,
           "`" + alloc.name + "` holds its largest region");
  std::vector<Patch> patches;
  for (const SlotBox& box : rectangles(setting.blocks, buffer, shape, boxes)) {
    patches.push_back(make_patch(table, shape, box, setting.bases.address(alloc), alloc.dtype));
  }
  return patches;
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

// The segments of every axis of the box, cut where a patch that meets the box begins or ends.
std::vector<std::vector<Interval>> segments(const std::vector<Interval>& box,
                                            std::span<const Participant> participants,
                                            std::span<const std::vector<std::int64_t>> cuts) {
  std::vector<std::set<std::int64_t>> points(box.size());
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    points[axis] = {box[axis].begin, box[axis].end};
    if (axis < cuts.size()) points[axis].insert(cuts[axis].begin(), cuts[axis].end());
  }
  for (const Participant& participant : participants) {
    for (const Patch& patch : participant.patches) {
      if (!meets(participant, patch, box)) continue;
      for (std::size_t i = 0; i < participant.axes.size(); ++i) {
        points[participant.axes[i]].insert({patch.span[i].begin, patch.span[i].end});
      }
    }
  }
  std::vector<std::vector<Interval>> result(box.size());
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    std::int64_t begin = box[axis].begin;
    for (const std::int64_t point : points[axis]) {
      if (point <= begin || point > box[axis].end) continue;
      result[axis].push_back({.begin = begin, .end = point});
      begin = point;
    }
  }
  return result;
}

}  // namespace

std::byte* Bases::address(const Alloc& alloc) const {
  HP_CHECK(alloc.rank.valid() && alloc.rank.index() < arenas.size(),
           "rank of `" + alloc.name + "`");
  HP_CHECK(alloc.offset >= 0 && alloc.offset % size_in_bytes(alloc.dtype) == 0,
           "`" + alloc.name + "` begins at an element");
  return arenas[alloc.rank.index()] + alloc.offset;
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
  const Alloc& alloc = setting.plan.allocs[ref.alloc.index()];
  std::map<Region, std::vector<Box>> by_region;
  for (const Box& box : ref.boxes) {
    for (Box& part : pin(alloc.holds, box)) {
      by_region[region_around(alloc.holds, part)].push_back(std::move(part));
    }
  }
  std::vector<Patch> patches;
  for (const auto& [region, boxes] : by_region) {
    for (Patch& patch : patches_in(setting, alloc, region, boxes)) {
      patch.mode = ref.mode;
      patch.occupancy = setting.occupancy.of(ref.alloc);
      patches.push_back(std::move(patch));
    }
  }
  return patches;
}

std::vector<Patch> patches_of_region(const Setting& setting, const Alloc& alloc,
                                     const Region& region) {
  const int buffer = index_of_buffer(setting.blocks, alloc.buffer);
  const BufferTable& table = setting.blocks.buffers()[static_cast<std::size_t>(buffer)];
  Box box;
  for (std::size_t i = 0; i < region.size(); ++i) {
    const auto digit = static_cast<std::size_t>(table.digits[i]);
    box.push_back(region[i] == kAll ? Range{.lo = 0, .hi = setting.blocks.digits()[digit].extent}
                                    : Range{.lo = region[i], .hi = region[i] + 1});
  }
  return patches_in(setting, alloc, region, {box});
}

std::vector<Cell> cut(const std::vector<Interval>& box, std::span<const Participant> participants,
                      std::vector<std::vector<std::int64_t>> cuts,
                      const std::optional<RaggedAxis>& ragged) {
  const bool empty = std::ranges::any_of(box, [](const Interval& i) { return i.size() <= 0; });
  if (empty) return {};
  if (ragged) ragged->add_cuts(cuts, box);
  std::vector<std::vector<Interval>> spans = {{}};
  for (const std::vector<Interval>& along : segments(box, participants, cuts)) {
    std::vector<std::vector<Interval>> longer;
    longer.reserve(spans.size() * along.size());
    for (const std::vector<Interval>& prefix : spans) {
      for (const Interval& segment : along) {
        longer.push_back(prefix);
        longer.back().push_back(segment);
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
