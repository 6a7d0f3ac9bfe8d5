#include "exec/cuda/executor/located_places.h"

#include <algorithm>
#include <numeric>

#include "exec/cuda/actions/loop_nests.h"

namespace harpe::cuda {
namespace {

using Part = RefLayout::Part;

bool have_one_size(const launch::Span& one, const launch::Span& other) {
  return std::ranges::equal(one, other, {}, &Interval::size, &Interval::size);
}

// How far apart in `to` the elements are that are `offset` apart in `from`, along the axes of a
// rectangle; none where no two are so far apart.
std::optional<std::int64_t> moved_offset(const Part& from, const Part& to, const launch::Span& span,
                                         std::int64_t offset) {
  std::vector<std::size_t> axes(span.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  std::ranges::stable_sort(axes, std::greater(), [&](std::size_t i) { return from.strides[i]; });
  std::int64_t moved = 0;
  for (const std::size_t axis : axes) {
    if (span[axis].size() <= 1 || from.strides[axis] <= 0) continue;
    const std::int64_t steps = offset / from.strides[axis];
    if (steps >= span[axis].size()) return std::nullopt;
    offset -= steps * from.strides[axis];
    moved += steps * to.strides[axis];
  }
  if (offset != 0) return std::nullopt;
  return moved;
}

// None where the steps of an extent are not equally far there.
std::optional<std::int64_t> moved_stride(const Part& from, const Part& to, const launch::Span& span,
                                         const StridedArray::Extent& extent) {
  const auto first = moved_offset(from, to, span, extent.stride);
  // Strides of dense axes only grow outwards: steps that differ somewhere make the last differ.
  const auto last = moved_offset(from, to, span, (extent.count - 1) * extent.stride);
  if (!first || !last || *last != (extent.count - 1) * *first) return std::nullopt;
  return first;
}

}  // namespace

LocatedPlaces::LocatedPlaces(const SpecSource& source, RefLayouts& layouts,
                             std::span<const std::vector<LaidRef>* const> refs)
    : source_(source), layouts_(layouts) {
  for (const std::vector<LaidRef>* const own : refs) {
    for (const LaidRef& ref : *own) refs_.emplace_back(ref.alloc, &ref);
  }
  std::ranges::stable_sort(refs_, {}, &std::pair<AllocId, const LaidRef*>::first);
}

std::optional<LocatedPlace> LocatedPlaces::find(const launch::Place& place) const {
  if (source_.plan.allocs[place.alloc.index()].level == Level::Home) {
    const LaidRef& home = layouts_.of_home(place.alloc);
    const Part* const part = home.find(place.span);
    if (part == nullptr) return std::nullopt;
    return LocatedPlace{.place = &place, .ref = &home, .part = part};
  }
  const auto all =
      std::ranges::equal_range(refs_, place.alloc, {}, &std::pair<AllocId, const LaidRef*>::first);
  for (const auto& [alloc, ref] : all) {
    if (const Part* const part = ref->find(place.span)) {
      return LocatedPlace{.place = &place, .ref = ref, .part = part};
    }
  }
  return std::nullopt;
}

std::optional<StridedArray> LocatedPlaces::move(const StridedArray& array, const LocatedPlace& from,
                                                const LocatedPlace& to) const {
  const launch::Span& span = to.place->span;
  if (!have_one_size(from.place->span, span)) return std::nullopt;
  StridedArray moved = array;
  for (StridedArray::Extent& extent : moved.extents) {
    if (extent.count <= 1 || from.part->strides == to.part->strides) continue;
    const auto stride = moved_stride(*from.part, *to.part, span, extent);
    if (!stride) return std::nullopt;
    extent.stride = *stride;
  }
  const Alloc& alloc = source_.plan.allocs[to.place->alloc.index()];
  std::int64_t offset = to.part->offset;
  for (std::size_t axis = 0; axis < span.size(); ++axis) {
    const std::int64_t begin = to.part->span[axis].begin + to.ref->origin[axis];
    offset += (span[axis].begin - begin) * to.part->strides[axis];
  }
  moved.element_bytes = size_in_bytes(alloc.dtype);
  moved.address = address_of(source_.bases.address(alloc)) +
                  static_cast<DeviceAddress>(offset * moved.element_bytes);
  return moved;
}

}  // namespace harpe::cuda
