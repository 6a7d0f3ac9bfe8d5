#include "exec/actions/view.h"

#include <algorithm>
#include <set>

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
  return patches_at(setting, setting.layouts.of(ref), ref.mode);
}

std::vector<Patch> patches_of_home(const Setting& setting, AllocId home) {
  return patches_at(setting, setting.layouts.of_home(home), WriteMode::Read);
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
