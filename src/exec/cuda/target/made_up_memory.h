#pragma once

#include <map>
#include <utility>

#include "exec/cuda/target/task_specs.h"

namespace harpe::cuda {

// Memory of all ranks at addresses that need not exist, as far apart as offsets can reach. Launches
// are prepared for it as for a GPU.
class MadeUpMemory {
 public:
  // Requires: both outlive this.
  MadeUpMemory(const Plan& plan, const Blocks& blocks);

  [[nodiscard]] const actions::Bases& bases() const { return bases_; }
  // Requires: this and the arguments outlive the source.
  [[nodiscard]] SpecSource source(const NarrowStates& narrow, const CollectiveChoice& collectives,
                                  int multiprocessors);

 private:
  [[nodiscard]] std::byte* image_of(TaskId put) const;

  const Plan& plan_;
  const Blocks& blocks_;
  launch::RefLayouts layouts_;
  Numbers numbers_;
  actions::Bases bases_;
  actions::Occupancy occupancy_;
};

}  // namespace harpe::cuda
