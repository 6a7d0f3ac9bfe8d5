#include "exec/cuda/executor/kernel_places.h"

#include <algorithm>
#include <numeric>

#include "exec/cuda/actions/loop_nests.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

using Part = RefLayout::Part;

std::vector<std::size_t> outermost_first(const std::vector<std::int64_t>& strides) {
  std::vector<std::size_t> axes(strides.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  std::ranges::stable_sort(axes, std::greater(), [&](std::size_t axis) { return strides[axis]; });
  return axes;
}

// How many steps along each axis of a rectangle an element is from the first; none where no element
// is `offset` from it.
std::optional<std::vector<std::int64_t>> find_steps(const std::vector<std::int64_t>& strides,
                                                    const launch::Span& span, std::int64_t offset) {
  std::vector<std::int64_t> steps(span.size(), 0);
  for (const std::size_t axis : outermost_first(strides)) {
    if (span[axis].size() <= 1 || strides[axis] <= 0) continue;
    steps[axis] = offset / strides[axis];
    if (steps[axis] >= span[axis].size()) return std::nullopt;
    offset -= steps[axis] * strides[axis];
  }
  if (offset != 0) return std::nullopt;
  return steps;
}

// How far apart elements are in `to` that are `offset` apart in `from`.
std::optional<std::int64_t> move_offset(const Part& from, const Part& to, const launch::Span& span,
                                        std::int64_t offset) {
  const auto steps = find_steps(from.strides, span, offset);
  if (!steps) return std::nullopt;
  return std::inner_product(steps->begin(), steps->end(), to.strides.begin(), std::int64_t{0});
}

// None where the steps of an extent are not equally far there.
std::optional<std::int64_t> move_stride(const Part& from, const Part& to, const launch::Span& span,
                                        const StridedArray::Extent& extent) {
  const auto first = move_offset(from, to, span, extent.stride);
  // Strides of dense axes only grow outwards: steps that differ somewhere make the last differ.
  const auto last = move_offset(from, to, span, (extent.count - 1) * extent.stride);
  if (!first || !last || *last != (extent.count - 1) * *first) return std::nullopt;
  return first;
}

bool holds(const Alloc& alloc, std::int64_t element_bytes) {
  return element_bytes <= size_in_bytes(alloc.dtype);
}

std::optional<launch::Place> find_in(const LaidRef& ref, const Part& part, std::int64_t first,
                                     std::int64_t last) {
  const auto from = find_steps(part.strides, part.span, first);
  const auto to = find_steps(part.strides, part.span, last);
  if (!from || !to) return std::nullopt;
  launch::Place place{.alloc = ref.alloc, .span = {}};
  for (std::size_t axis = 0; axis < part.span.size(); ++axis) {
    const std::int64_t begin = part.span[axis].begin + ref.origin[axis];
    place.span.push_back({.begin = begin + (*from)[axis], .end = begin + (*to)[axis] + 1});
  }
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
  return cuda::locate(layouts_.of_home(place.alloc), place);
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

}  // namespace harpe::cuda
