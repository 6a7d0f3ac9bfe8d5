#pragma once

#include <optional>
#include <span>
#include <vector>

#include "exec/cuda/executor/kernel_arrays.h"
#include "exec/cuda/executor/task_specs.h"
#include "plan/launch_plan.h"

namespace harpe::cuda {

// Which elements of which allocations arrays are, by what tasks read and write: a slot holds other
// blocks at other times, and only a task's references say which.
class KernelPlaces {
 public:
  // `partials16`: allocations that hold half of their type. Requires: `source` outlives this.
  KernelPlaces(const SpecSource& source, const std::vector<AllocId>& partials16);

  // From now on arrays are what these tasks read and write, or lie in homes.
  void enter(std::span<const TaskId> tasks);
  // None where an array is not a rectangle of one of them, as of scratch memory.
  [[nodiscard]] std::optional<launch::Place> find(const StridedArray& array) const;
  // The opposite: an array of the same shape and elements that lies at another place, as its
  // strides are there. None where the array has no place, or what the tasks read and write and
  // homes hold no such rectangle.
  [[nodiscard]] std::optional<StridedArray> move(const StridedArray& array,
                                                 const launch::Place& to) const;

 private:
  struct Candidate {
    AllocId alloc;
    actions::Patch patch;
    std::int64_t element_bytes = 4;
  };
  void add_home(AllocId id);
  // Where an array lies: in which candidate, and its place there.
  struct Found {
    const Candidate* in = nullptr;
    launch::Place place;
  };
  [[nodiscard]] std::vector<Candidate> candidates_of(const Ref& ref) const;
  [[nodiscard]] std::optional<Found> find_candidate(const StridedArray& array) const;
  [[nodiscard]] const Candidate* find_holder(const launch::Place& place) const;
  [[nodiscard]] static std::optional<launch::Place> find_in(const Candidate& candidate,
                                                            const StridedArray& array);

  const SpecSource& source_;
  std::vector<bool> is_half_;  // by allocation
  std::vector<Candidate> homes_;
  std::vector<Candidate> own_;  // of the tasks that were entered
};

}  // namespace harpe::cuda
