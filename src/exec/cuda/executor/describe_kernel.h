#pragma once

#include <functional>

#include "exec/cuda/actions/launch_spec.h"
#include "exec/cuda/executor/kernel_places.h"
#include "plan/launch_plan.h"

namespace harpe::cuda {

// Which signals flags and targets at made-up addresses stand for.
struct SignalNames {
  std::function<std::optional<launch::SignalId>(const device::FlagWait&)> awaited;
  std::function<launch::Raise(const device::RaiseTarget&)> raised;
};

// What one launch is called, what is chosen for it on so many multiprocessors, and where it reads
// and stores.
[[nodiscard]] launch::Kernel describe_kernel(const LaunchSpec& spec, int multiprocessors,
                                             const KernelPlaces& places, const SignalNames& names);

}  // namespace harpe::cuda
