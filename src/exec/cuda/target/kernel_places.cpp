#include "exec/cuda/target/kernel_places.h"

#include <algorithm>

#include "exec/cuda/kernels/loop_nests.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

using Part = RefLayout::Part;

// Calls `take(axis, steps)` with the number of steps along each axis of a rectangle from the first
// element to the element at `offset`, except 0. False if no element is at `offset`.
template <class Take>
bool take_steps(const Part& part, const launch::Span& span, std::int64_t offset, const Take& take) {
  for (const std::size_t axis : part.outermost) {
    if (span[axis].size() <= 1 || part.strides[axis] <= 0) continue;
    const std::int64_t steps = offset / part.strides[axis];
    if (steps >= span[axis].size()) return false;
    offset -= steps * part.strides[axis];
    take(axis, steps);
  }
  return offset == 0;
}

// The distance in `to` of elements that are `offset` apart in `from`.
std::optional<std::int64_t> move_offset(const Part& from, const Part& to, const launch::Span& span,
                                        std::int64_t offset) {
  std::int64_t moved = 0;
  const bool is_there = take_steps(from, span, offset, [&](std::size_t axis, std::int64_t steps) {
    moved += steps * to.strides[axis];
  });
  if (!is_there) return std::nullopt;
  return moved;
}

// None if the steps of an extent are not uniform there.
std::optional<std::int64_t> move_stride(const Part& from, const Part& to, const launch::Span& span,
                                        const StridedArray::Extent& extent) {
  const auto first = move_offset(from, to, span, extent.stride);
  // Strides of dense axes only grow outwards: if any steps differ, the last one differs.
  const auto last = move_offset(from, to, span, (extent.count - 1) * extent.stride);
  if (!first || !last || *last != (extent.count - 1) * *first) return std::nullopt;
  return first;
}

bool holds(const Alloc& alloc, std::int64_t element_bytes) {
  return element_bytes <= size_in_bytes(alloc.dtype);
}

std::optional<launch::Place> find_in(const LaidRef& ref, const Part& part, std::int64_t first,
                                     std::int64_t last) {
  launch::Place place{.alloc = ref.alloc, .span = part.span};
  for (std::size_t axis = 0; axis < place.span.size(); ++axis) {
    Interval& along = place.span[axis];
    along.begin += ref.origin[axis];
    along.end = along.begin + 1;
  }
  const bool begins = take_steps(part, part.span, first, [&](std::size_t axis, std::int64_t steps) {
    place.span[axis].begin += steps;
  });
  const bool ends =
      begins && take_steps(part, part.span, last, [&](std::size_t axis, std::int64_t steps) {
        place.span[axis].end += steps;
      });
  if (!ends) return std::nullopt;
  return place;
}

}  // namespace

std::size_t find_ref(const std::vector<LaidRef>& refs, const launch::Place& place) {
  const auto found = std::ranges::find_if(refs, [&](const LaidRef& ref) {
    return ref.alloc == place.alloc && ref.find(place.span) != nullptr;
  });
  HP_CHECK(found != refs.end(), "a kernel's place is one that its task names");
  return static_cast<std::size_t>(found - refs.begin());
}

std::int64_t shift_along(const LaidRef& from, const LaidRef& to, const Part& part,
                         std::size_t axis) {
  const Part& same = to.layout->parts[static_cast<std::size_t>(&part - from.layout->parts.data())];
  return same.span[axis].begin + to.origin[axis] - part.span[axis].begin - from.origin[axis];
}

std::optional<LocatedPlace> locate(const LaidRef& ref, const launch::Place& place) {
  if (ref.alloc != place.alloc) return std::nullopt;
  const Part* const part = ref.find(place.span);
  if (part == nullptr) return std::nullopt;
  LocatedPlace located{.alloc = ref.alloc, .part = part, .offset = part->offset};
  for (std::size_t axis = 0; axis < place.span.size(); ++axis) {
    const std::int64_t begin = part->span[axis].begin + ref.origin[axis];
    located.offset += (place.span[axis].begin - begin) * part->strides[axis];
  }
  return located;
}

DeviceAddress find_address(const SpecSource& source, const LocatedPlace& place,
                           std::int64_t element_bytes) {
  return address_of(source.bases.address(source.plan.allocs[place.alloc.index()])) +
         static_cast<DeviceAddress>(place.offset * element_bytes);
}

std::optional<launch::Place> find_place(const SpecSource& source, std::span<const LaidRef> refs,
                                        const StridedArray& array) {
  std::int64_t reach = 0;
  for (const StridedArray::Extent& extent : array.extents) {
    reach += (extent.count - 1) * extent.stride;
  }
  for (const LaidRef& ref : refs) {
    if (!holds(source.plan.allocs[ref.alloc.index()], array.element_bytes)) continue;
    for (const Part& part : ref.layout->parts) {
      const DeviceAddress begin = find_address(
          source, {.alloc = ref.alloc, .part = &part, .offset = part.offset}, array.element_bytes);
      if (array.address < begin) continue;
      const auto bytes = static_cast<std::int64_t>(array.address - begin);
      const std::int64_t first = bytes / array.element_bytes;
      if (bytes % array.element_bytes != 0) continue;
      if (auto place = find_in(ref, part, first, first + reach)) return place;
    }
  }
  return std::nullopt;
}

std::optional<LocatedPlace> KernelPlaces::locate(const launch::Place& place) {
  const auto alloc_of = &std::pair<AllocId, const LaidRef*>::first;
  if (by_alloc_.empty()) {
    for (const std::vector<LaidRef>* const refs : named_) {
      for (const LaidRef& ref : *refs) by_alloc_.emplace_back(ref.alloc, &ref);
    }
    std::ranges::stable_sort(by_alloc_, {}, alloc_of);
  }
  for (const auto& [alloc, ref] : std::ranges::equal_range(by_alloc_, place.alloc, {}, alloc_of)) {
    if (auto located = cuda::locate(*ref, place)) return located;
  }
  const Alloc& alloc = source_.plan.allocs[place.alloc.index()];
  if (alloc.level != Level::Home || alloc.rank != rank_) return std::nullopt;
  return cuda::locate(source_.layouts.of_home(place.alloc), place);
}

std::optional<StridedArray> KernelPlaces::move(const StridedArray& array, const launch::Span& span,
                                               const LocatedPlace& from,
                                               const LocatedPlace& to) const {
  if (!holds(source_.plan.allocs[to.alloc.index()], array.element_bytes)) return std::nullopt;
  StridedArray moved = array;
  for (StridedArray::Extent& extent : moved.extents) {
    if (extent.count <= 1 || from.part->strides == to.part->strides) continue;
    const auto stride = move_stride(*from.part, *to.part, span, extent);
    if (!stride) return std::nullopt;
    extent.stride = *stride;
  }
  moved.address = find_address(source_, to, array.element_bytes);
  return moved;
}

std::optional<StridedArray> KernelPlaces::spread(const StridedArray& array,
                                                 const launch::Place& place,
                                                 const LocatedPlace& from,
                                                 const LocatedPlace& to) const {
  const auto axes_of = [&](AllocId alloc) -> const std::vector<int>& {
    const int buffer = source_.layouts.buffer_of(alloc);
    return source_.blocks.buffers()[static_cast<std::size_t>(buffer)].axes;
  };
  const std::vector<int>& axes = axes_of(place.alloc);
  const std::vector<int>& others = axes_of(to.alloc);
  if (to.part->strides.size() != others.size()) return std::nullopt;
  Part spread = *from.part;
  std::ranges::fill(spread.strides, 0);
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto at = std::ranges::find(axes, others[i]);
    if (at == axes.end()) return std::nullopt;
    spread.strides[static_cast<std::size_t>(at - axes.begin())] = to.part->strides[i];
  }
  StridedArray beside = array;
  beside.element_bytes = size_in_bytes(source_.plan.allocs[to.alloc.index()].dtype);
  beside.address = find_address(source_, to, beside.element_bytes);
  for (StridedArray::Extent& extent : beside.extents) {
    const auto stride = extent.count > 1 ? move_stride(*from.part, spread, place.span, extent)
                                         : std::optional<std::int64_t>(0);
    if (!stride) return std::nullopt;
    extent.stride = *stride;
  }
  return beside;
}

}  // namespace harpe::cuda
