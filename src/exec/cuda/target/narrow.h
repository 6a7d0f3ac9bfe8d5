#pragma once

#include <vector>

#include "exec/actions/action.h"
#include "exec/actions/view.h"
#include "exec/cuda/kernels/plan_launches.h"
#include "plan/plan.h"

namespace harpe::cuda {

// Partial states of f32 that one launch makes whole, and that all of their readers round to the
// same 16-bit type, are stored in that type: one rounding either way, and half the bytes cross.
// They begin where the plan places them, and need half the space.
class NarrowStates {
 public:
  // `allocs`: a launch plan's `partials16`.
  [[nodiscard]] static NarrowStates of(const Plan& plan, const actions::Bases& bases,
                                       const std::vector<AllocId>& allocs);

  // Makes an action read such a state in its 16-bit type.
  void read(actions::Action& action) const;
  // Makes launches store such a state in its 16-bit type.
  void leave(LaunchSpecs& launches) const;

 private:
  // `dtype`: the type that all readers round it to.
  struct State {
    Partial16 partial;
    DType dtype = DType::BF16;
  };

  std::vector<State> states_;
};

}  // namespace harpe::cuda
