#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "exec/cuda/executor/kernel_places.h"
#include "launch/ref_layouts.h"

namespace harpe::cuda {

using launch::LaidRef;
using launch::RefLayout;
using launch::RefLayouts;

// A place in the slot that holds it.
struct LocatedPlace {
  const launch::Place* place = nullptr;
  const LaidRef* ref = nullptr;
  const RefLayout::Part* part = nullptr;
};

// Finds where places lie that the tasks of one launch name: in homes, or in what they read and
// write.
class LocatedPlaces {
 public:
  // `refs`: of each of the launch's tasks. Requires: all of it outlives this.
  LocatedPlaces(const SpecSource& source, RefLayouts& layouts,
                std::span<const std::vector<LaidRef>* const> refs);

  // None where no reference holds all of it. The place must outlive the result.
  [[nodiscard]] std::optional<LocatedPlace> find(const launch::Place& place) const;

  // `array` is the elements of `from`, which are as many along each axis as those of `to`. Its
  // first element and strides where `to` lies; none where its steps are not equally far there.
  [[nodiscard]] std::optional<StridedArray> move(const StridedArray& array,
                                                 const LocatedPlace& from,
                                                 const LocatedPlace& to) const;

 private:
  const SpecSource& source_;
  RefLayouts& layouts_;
  std::vector<std::pair<AllocId, const LaidRef*>> refs_;  // by allocation
};

}  // namespace harpe::cuda
