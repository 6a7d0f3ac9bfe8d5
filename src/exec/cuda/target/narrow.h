#pragma once

#include <vector>

#include "exec/actions/action.h"
#include "exec/actions/view.h"
#include "exec/cuda/kernels/plan_launches.h"
#include "plan/plan.h"

namespace harpe::cuda {

// Partial states of f32 that launches make at once, and that everybody who reads them rounds to the
// type of 16 bits that they end in, are left in that type: one rounding either way, and half the
// bytes cross. They begin where the plan has them, and take half the room.
class NarrowStates {
 public:
  // `allocs` are a launch plan's `partials16`.
  [[nodiscard]] static NarrowStates of(const Plan& plan, const actions::Bases& bases,
                                       const std::vector<AllocId>& allocs);

  // What reads one of them, in its type.
  void read(actions::Action& action) const;
  // What makes one of them, left in its type.
  void leave(LaunchSpecs& launches) const;

 private:
  // `dtype`: what all who read it round it to.
  struct State {
    Partial16 partial;
    DType dtype = DType::BF16;
  };

  std::vector<State> states_;
};

}  // namespace harpe::cuda
