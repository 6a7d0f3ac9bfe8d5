#pragma once

#include <functional>
#include <string>

#include "exec/cuda/actions/launch_spec.h"
#include "exec/cuda/executor/kernel_places.h"
#include "plan/launch_plan.h"

namespace harpe::cuda {

// Which signals flags and targets at made-up addresses stand for.
struct SignalNames {
  std::function<std::optional<launch::SignalId>(const device::FlagWait&)> awaited;
  std::function<launch::Raise(const device::RaiseTarget&)> raised;
};

// What runs a launch: a kernel, the copy engine or a library.
[[nodiscard]] std::string name_kernel(const LaunchSpec& spec);
// The variant of an attention kernel whose keys are cut into so many parts.
[[nodiscard]] std::string print_parts(int parts);

// What one launch is called, and where it reads and stores.
[[nodiscard]] launch::Kernel describe_kernel(const LaunchSpec& spec, const KernelPlaces& places,
                                             const SignalNames& names);
// What is chosen for it on so many multiprocessors; "" where there is no choice.
[[nodiscard]] std::string describe_variant(const LaunchSpec& spec, int multiprocessors);

}  // namespace harpe::cuda
