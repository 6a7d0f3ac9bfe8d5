#include "exec/cuda/executor/kernel_places.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "exec/cuda/actions/loop_nests.h"

namespace harpe::cuda {
namespace {

// Where an element of a patch lies along each axis; none where no element is `offset` from its
// first.
std::optional<std::vector<std::int64_t>> coordinates_in(const actions::Patch& patch,
                                                        std::int64_t offset) {
  std::vector<std::size_t> axes(patch.span.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  std::ranges::stable_sort(axes, std::greater(), [&](std::size_t i) { return patch.strides[i]; });
  std::vector<std::int64_t> at(axes.size(), 0);
  for (const std::size_t axis : axes) {
    if (patch.span[axis].size() <= 1 || patch.strides[axis] <= 0) continue;
    at[axis] = offset / patch.strides[axis];
    if (at[axis] >= patch.span[axis].size()) return std::nullopt;
    offset -= at[axis] * patch.strides[axis];
  }
  if (offset != 0) return std::nullopt;
  return at;
}

}  // namespace

KernelPlaces::KernelPlaces(const SpecSource& source, const std::vector<AllocId>& partials16)
    : source_(source), is_half_(source.plan.allocs.size(), false) {
  for (const AllocId alloc : partials16) is_half_[alloc.index()] = true;
  std::set<AllocId> known;
  for (const Task& task : source.plan.tasks) {
    for (const Ref& ref : task.reads) {
      if (source.plan.allocs[ref.alloc.index()].level != Level::Home) continue;
      if (known.insert(ref.alloc).second) add_home(ref.alloc);
    }
  }
}

void KernelPlaces::add_home(AllocId id) {
  const Alloc& alloc = source_.plan.allocs[id.index()];
  const Region home = source_.blocks.home(source_.blocks.find_buffer(alloc.buffer), alloc.rank);
  const actions::Scratch no_scratch;
  for (actions::Patch& patch :
       actions::patches_of_region(source_.setting(no_scratch), alloc, home)) {
    homes_.push_back(
        {.alloc = id, .patch = std::move(patch), .element_bytes = size_in_bytes(alloc.dtype)});
  }
}

std::vector<KernelPlaces::Candidate> KernelPlaces::candidates_of(const Ref& ref) const {
  const Alloc& alloc = source_.plan.allocs[ref.alloc.index()];
  const actions::Scratch no_scratch;
  std::vector<Candidate> candidates;
  for (actions::Patch& patch : actions::patches_of(source_.setting(no_scratch), ref)) {
    Candidate candidate{
        .alloc = ref.alloc, .patch = std::move(patch), .element_bytes = size_in_bytes(alloc.dtype)};
    if (is_half_[ref.alloc.index()]) {
      std::byte* const begin = source_.bases.address(alloc);
      candidate.patch.data = begin + (candidate.patch.data - begin) / 2;
      candidate.element_bytes /= 2;
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

void KernelPlaces::enter(std::span<const TaskId> tasks) {
  own_.clear();
  for (const TaskId id : tasks) {
    const Task& task = source_.plan.tasks[id.index()];
    for (const std::vector<Ref>* refs : {&task.writes, &task.reads}) {
      for (const Ref& ref : *refs) {
        const std::vector<Candidate> found = candidates_of(ref);
        own_.insert(own_.end(), found.begin(), found.end());
      }
    }
  }
}

std::optional<KernelPlaces::Found> KernelPlaces::find_candidate(const StridedArray& array) const {
  for (const std::vector<Candidate>* all : {&own_, &homes_}) {
    for (const Candidate& candidate : *all) {
      if (auto place = find_in(candidate, array)) {
        return Found{.in = &candidate, .place = *std::move(place)};
      }
    }
  }
  return std::nullopt;
}

std::optional<launch::Place> KernelPlaces::find(const StridedArray& array) const {
  std::optional<Found> found = find_candidate(array);
  if (!found) return std::nullopt;
  return std::move(found->place);
}

const KernelPlaces::Candidate* KernelPlaces::find_holder(const launch::Place& place) const {
  const auto holds = [&](const Candidate& candidate) {
    return candidate.alloc == place.alloc &&
           std::ranges::equal(candidate.patch.span, place.span,
                              [](const Interval& all, const Interval& part) {
                                return all.begin <= part.begin && part.end <= all.end;
                              });
  };
  for (const std::vector<Candidate>* all : {&own_, &homes_}) {
    const auto found = std::ranges::find_if(*all, holds);
    if (found != all->end()) return &*found;
  }
  return nullptr;
}

std::optional<StridedArray> KernelPlaces::move(const StridedArray& array,
                                               const launch::Place& to) const {
  const std::optional<Found> here = find_candidate(array);
  if (!here) return std::nullopt;
  if (here->place == to) return array;
  const Candidate* const there = find_holder(to);
  if (there == nullptr || to.span.size() != here->place.span.size()) return std::nullopt;
  // How far apart two elements of the place are there, by their steps along each axis.
  const auto distance = [&](const auto& steps) {
    std::int64_t elements = 0;
    for (std::size_t axis = 0; axis < to.span.size(); ++axis) {
      elements += steps(axis) * there->patch.strides[axis];
    }
    return elements;
  };
  const std::int64_t first = distance(
      [&](std::size_t axis) { return to.span[axis].begin - there->patch.span[axis].begin; });
  std::int64_t last =
      distance([&](std::size_t axis) { return to.span[axis].end - 1 - to.span[axis].begin; });
  StridedArray moved{.address = address_of(there->patch.data) +
                                static_cast<DeviceAddress>(first * there->element_bytes),
                     .element_bytes = there->element_bytes,
                     .extents = array.extents};
  const actions::Patch& patch = here->in->patch;
  const std::int64_t begin =
      static_cast<std::int64_t>(array.address - address_of(patch.data)) / array.element_bytes;
  const auto from = coordinates_in(patch, begin);
  for (StridedArray::Extent& extent : moved.extents) {
    if (extent.count == 1) continue;
    const auto next = coordinates_in(patch, begin + extent.stride);
    if (!next) return std::nullopt;
    extent.stride = distance([&](std::size_t axis) { return (*next)[axis] - (*from)[axis]; });
    last -= (extent.count - 1) * extent.stride;
  }
  if (last != 0) return std::nullopt;
  return moved;
}

std::optional<launch::Place> KernelPlaces::find_in(const Candidate& candidate,
                                                   const StridedArray& array) {
  const DeviceAddress begin = address_of(candidate.patch.data);
  const std::int64_t size = candidate.element_bytes;
  if (array.element_bytes != size || array.address < begin) return std::nullopt;
  const auto bytes = static_cast<std::int64_t>(array.address - begin);
  std::int64_t last = bytes / size;
  for (const StridedArray::Extent& extent : array.extents) {
    last += (extent.count - 1) * extent.stride;
  }
  const auto from = coordinates_in(candidate.patch, bytes / size);
  const auto to = coordinates_in(candidate.patch, last);
  if (bytes % size != 0 || !from || !to) return std::nullopt;
  launch::Place place{.alloc = candidate.alloc, .span = {}};
  for (std::size_t axis = 0; axis < from->size(); ++axis) {
    const std::int64_t first = candidate.patch.span[axis].begin;
    place.span.push_back({.begin = first + (*from)[axis], .end = first + (*to)[axis] + 1});
  }
  return place;
}

}  // namespace harpe::cuda
