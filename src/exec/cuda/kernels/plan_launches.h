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
  std::string nest;         // of the action, for diagnostics
  std::string buffer;       // that the action makes, for diagnostics
  std::string kernel = {};  // named by `patch`; empty: none
  bool by_copy_engine = false;
  int multiprocessors = 132;  // SMs that may be used
};

// The kernels of one folder (kernels.def).
struct KernelFamily {
  // The launches for an action, in order; none if the family does not take it. Errors: as
  // plan_launches.
  Checked<std::optional<LaunchSpecs>> (*plan)(const LaunchChoice&, const actions::Action&);
  // Null: the family has no kernels to compile.
  std::vector<KernelVariant> (*variants)();
  // As the functions below; null: false for all its kernels.
  bool (*moves_by_threads)(const launch::Kernel&, DType) = nullptr;
  bool (*bounds_epochs)(const launch::Kernel&) = nullptr;
};

// The launches for an action, in order, by the first family that takes it; pure. Addresses of the
// action are GPU addresses.
// Errors: G072 no kernel for it; G075 more loops than kernels walk and launches may unroll; G083
// the kernel that `patch` named cannot run it.
[[nodiscard]] Checked<LaunchSpecs> plan_launches(const LaunchChoice& choice,
                                                 const actions::Action& action);

// The most bytes that a kernel awaits in data; measured to be faster than flags up to here
// (plan_times.md).
inline constexpr std::int64_t kMostInData = std::int64_t{8} << 20;

// The properties of launch::Offers, for a kernel of any family.
[[nodiscard]] bool moves_by_threads(const launch::Kernel& kernel, DType dtype);
[[nodiscard]] bool bounds_epochs(const launch::Kernel& kernel);

}  // namespace harpe::cuda
