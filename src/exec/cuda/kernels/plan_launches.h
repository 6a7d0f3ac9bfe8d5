#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/actions/action.h"
#include "exec/cuda/jit/kernel_variant.h"
#include "exec/cuda/kernels/launch_spec.h"
#include "plan/launch_plan.h"

namespace harpe::cuda {

// What the choice of launches depends on, besides the action.
struct LaunchChoice {
  std::string nest;         // whose action it is, and
  std::string buffer;       // what it makes, for what is said
  std::string kernel = {};  // that `patch` named, or none
  bool by_copy_engine = false;
  int multiprocessors = 132;  // that may work at once
};

// The kernels of one folder (kernels.def).
struct KernelFamily {
  // What an action becomes, in order; none where the family does not take it. Errors: as below.
  Checked<std::optional<LaunchSpecs>> (*plan)(const LaunchChoice&, const actions::Action&);
  // Null: nothing is compiled for it.
  std::vector<KernelVariant> (*variants)();
  // As below; null: of none.
  bool (*moves_by_threads)(const launch::Kernel&, DType) = nullptr;
  bool (*bounds_epochs)(const launch::Kernel&) = nullptr;
};

// What an action becomes by the first family that takes it, in order; pure. Addresses of the action
// are those of the GPU.
// Errors: G072 no kernel for it; G075 more loops than kernels walk and launches can be; G083 the
// kernel that was asked for cannot.
[[nodiscard]] Checked<LaunchSpecs> plan_launches(const LaunchChoice& choice,
                                                 const actions::Action& action);

// As launch::Offers has them, of a kernel of any family.
[[nodiscard]] bool moves_by_threads(const launch::Kernel& kernel, DType dtype);
[[nodiscard]] bool bounds_epochs(const launch::Kernel& kernel);

}  // namespace harpe::cuda
