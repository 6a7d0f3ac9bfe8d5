#pragma once

#include <span>
#include <vector>

#include "exec/actions/action.h"
#include "exec/cuda/actions/launch_spec.h"

namespace harpe::cuda {

// The same launches, with what they leave as partial states written where `moves` would take it,
// in the type they would round it to: one rounding either way. Attention still reads the state that
// it carries on where it was. False, and nothing changed, where a product adds to what is there, or
// a launch cannot write such a type or place, or leaves another part than is moved.
[[nodiscard]] bool relocate(std::vector<LaunchSpec>& launches,
                            std::span<const actions::Action> moves);

}  // namespace harpe::cuda
