#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "exec/cuda/kernels/strided_array.h"
#include "exec/cuda/target/task_specs.h"
#include "plan/launch_plan.h"
#include "plan/ref_layouts.h"

namespace harpe::cuda {

using launch::LaidRef;
using launch::RefLayout;
using launch::RefLayouts;

// The position of a place's first element, within the rectangle of a slot that contains the place.
struct LocatedPlace {
  AllocId alloc;
  const RefLayout::Part* part = nullptr;
  std::int64_t offset = 0;  // elements from the begin of the allocation
};

// Index of the first reference that contains the whole place. Requires: there is one.
[[nodiscard]] std::size_t find_ref(const std::vector<LaidRef>& refs, const launch::Place& place);

// The distance along an axis from a part of `from` to the same part of `to`, which has the same
// shape.
[[nodiscard]] std::int64_t shift_along(const LaidRef& from, const LaidRef& to,
                                       const RefLayout::Part& part, std::size_t axis);

// None if the reference does not contain the whole place.
[[nodiscard]] std::optional<LocatedPlace> locate(const LaidRef& ref, const launch::Place& place);
// 16-bit partials are elements of two bytes from the begin of their f32 allocation on.
[[nodiscard]] DeviceAddress find_address(const SpecSource& source, const LocatedPlace& place,
                                         std::int64_t element_bytes);

// The elements of a task that an array is: a slot holds different blocks at different times, which
// only a task's references identify. None if the array is not a rectangle of one reference, such as
// scratch memory.
[[nodiscard]] std::optional<launch::Place> find_place(const SpecSource& source,
                                                      std::span<const LaidRef> refs,
                                                      const StridedArray& array);

// Finds the places that a launch states: in its tasks' references, or in homes of its rank.
class KernelPlaces {
 public:
  // Requires: all arguments outlive this, and so do references that are added.
  KernelPlaces(const SpecSource& source, RankId rank) : source_(source), rank_(rank) {}

  void add(const std::vector<LaidRef>& refs) { named_.push_back(&refs); }
  [[nodiscard]] std::optional<LocatedPlace> locate(const launch::Place& place);

  // The same elements, or equally many, at another place. `array` is the rectangle at `from`, with
  // the lengths of `span` along the axes. Returns its first element and strides at `to`; none if
  // its steps are not uniform there, or its elements are larger than those there.
  [[nodiscard]] std::optional<StridedArray> move(const StridedArray& array,
                                                 const launch::Span& span, const LocatedPlace& from,
                                                 const LocatedPlace& to) const;

  // The elements of another buffer at `to` that belong to the positions of `array`, the rectangle
  // `place` at `from`: strides are 0 along axes that the other buffer lacks. None if steps are not
  // uniform there, or the other buffer has axes that the first lacks.
  [[nodiscard]] std::optional<StridedArray> spread(const StridedArray& array,
                                                   const launch::Place& place,
                                                   const LocatedPlace& from,
                                                   const LocatedPlace& to) const;

 private:
  const SpecSource& source_;
  RankId rank_;
  std::vector<const std::vector<LaidRef>*> named_;
  std::vector<std::pair<AllocId, const LaidRef*>> by_alloc_;  // filled on first use
};

}  // namespace harpe::cuda
