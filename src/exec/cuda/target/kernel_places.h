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

// Where the first element of a place lies, in the rectangle of a slot that holds the place.
struct LocatedPlace {
  AllocId alloc;
  const RefLayout::Part* part = nullptr;
  std::int64_t offset = 0;  // elements from where the allocation begins
};

// Index of the first reference that holds all of the place. Requires: there is one.
[[nodiscard]] std::size_t find_ref(const std::vector<LaidRef>& refs, const launch::Place& place);

// How far a part of `from` is, along an axis, from where `to` has it, which has the same shape.
[[nodiscard]] std::int64_t shift_along(const LaidRef& from, const LaidRef& to,
                                       const RefLayout::Part& part, std::size_t axis);

// None where the reference does not hold all of the place.
[[nodiscard]] std::optional<LocatedPlace> locate(const LaidRef& ref, const launch::Place& place);
// 16-bit partials lie in allocations of f32 as elements of two bytes, from where these begin.
[[nodiscard]] DeviceAddress find_address(const SpecSource& source, const LocatedPlace& place,
                                         std::int64_t element_bytes);

// Which elements an array is, of those that a task names: a slot holds other blocks at other times,
// and only a task's references say which. None where it is not a rectangle of one of them, as of
// scratch memory.
[[nodiscard]] std::optional<launch::Place> find_place(const SpecSource& source,
                                                      std::span<const LaidRef> refs,
                                                      const StridedArray& array);

// Where places lie that a launch states: in what its tasks name, or in homes of its rank.
class KernelPlaces {
 public:
  // Requires: all of it outlives this, and so do references that are added.
  KernelPlaces(const SpecSource& source, RankId rank) : source_(source), rank_(rank) {}

  void add(const std::vector<LaidRef>& refs) { named_.push_back(&refs); }
  [[nodiscard]] std::optional<LocatedPlace> locate(const launch::Place& place);

  // The same elements, or as many, at another place: `array` is the rectangle at `from`, as long
  // along each axis as `span`. Its first element and strides where `to` lies; none where its steps
  // are not equally far there, or its elements are larger than those there.
  [[nodiscard]] std::optional<StridedArray> move(const StridedArray& array,
                                                 const launch::Span& span, const LocatedPlace& from,
                                                 const LocatedPlace& to) const;

  // What lies at `to`, elements of another buffer, at the positions of `array`, which is the
  // rectangle `place` at `from`: its strides are 0 along axes that the other buffer lacks. None
  // where steps are not equally far there, or the other has axes that the first lacks.
  [[nodiscard]] std::optional<StridedArray> spread(const StridedArray& array,
                                                   const launch::Place& place,
                                                   const LocatedPlace& from,
                                                   const LocatedPlace& to) const;

 private:
  const SpecSource& source_;
  RankId rank_;
  std::vector<const std::vector<LaidRef>*> named_;
  std::vector<std::pair<AllocId, const LaidRef*>> by_alloc_;  // once one is looked for
};

}  // namespace harpe::cuda
