#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/signals/device/signal_args.h"
#include "exec/cuda/target/describe_kernel.h"
#include "exec/cuda/target/kernel_places.h"
#include "plan/launch_plan.h"

namespace harpe::cuda {

// Where the signals of a launch plan lie, for the kernels of one rank.
struct SignalCells {
  std::function<device::FlagWait(launch::SignalId)> awaited;  // in the rank's own page
  // None: the signal is to be lost (tests).
  std::function<std::optional<device::RaiseTarget>(const launch::Raise&)> raised;
  std::function<bool(launch::SignalId)> is_in_data;
  device::WaitContext context{};  // but for its task
};

// What launches are bound to: memory, real or made up, and signals.
struct BindSource {
  const SpecSource& memory;
  // By task, what it runs alone: for the tasks of the launches that are bound.
  const std::vector<TaskAlone>& alone;
  SignalCells cells;
};

// The kernels of a launch, in order, with addresses. Everything that can be chosen is taken from
// the launch: what is merged, where operands lie and results go, what is awaited inside. Types,
// shapes, strides and masks are those of its tasks alone. `wait` is set for kernels that await or
// raise signals inside.
// Requires: the launch was made for the source's plan and target; no task of kernels without panels
// is like another.
// Errors: G092 a kernel that its tasks alone do not make up; those of landing_specs_of.
[[nodiscard]] Checked<LaunchSpecs> bind(const BindSource& source, const launch::Launch& launch);
// One kernel with panels for tasks of the launch, whatever its own kernels. A kernel that names no
// variant has that of its tasks alone. Errors: as above.
[[nodiscard]] Checked<LaunchSpec> bind_kernel(const BindSource& source,
                                              const launch::Launch& launch,
                                              const launch::Kernel& kernel);

// Whether a bound kernel has the variant that the launch plan names. Requires: its check is ok.
// Errors: G092.
[[nodiscard]] Checked<Ok> check_variant(const launch::Launch& launch, const launch::Kernel& kernel,
                                        const LaunchSpec& spec);

// Whether a launch takes over what another kind of task than its first would do: a transfer that
// kernels make, a total that they store, or a map of it. Such tasks have no kernel of their own.
[[nodiscard]] bool is_taken_over(const Plan& plan, const launch::Launch& launch, TaskId task);

}  // namespace harpe::cuda
