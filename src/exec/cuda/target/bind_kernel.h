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

// The addresses of a launch plan's signals, for the kernels of one rank.
struct SignalCells {
  std::function<device::FlagWait(launch::SignalId)> awaited;  // in the rank's own page
  // None: tests drop the signal.
  std::function<std::optional<device::RaiseTarget>(const launch::Raise&)> raised;
  std::function<bool(launch::SignalId)> is_in_data;
  device::WaitContext context{};  // without its task
};

// What launches are bound to: real or made-up memory, and signals.
struct BindSource {
  const SpecSource& memory;
  // By task, its own launches: for the tasks of the bound launches.
  const std::vector<TaskAlone>& alone;
  SignalCells cells;
};

// The kernels of a launch, in order, with addresses. All choices are taken from the launch: merges,
// places of operands and results, inner waits. Types, shapes, strides and masks are those of its
// tasks' own launches. `wait` is set for kernels that await or raise signals inside. Requires: the
// launch was made for the source's plan and target; no task of kernels without panels is like
// another. Errors: G092 the tasks' own launches cannot make up a kernel; those of landing_specs_of.
[[nodiscard]] Checked<LaunchSpecs> bind(const BindSource& source, const launch::Launch& launch);
// One kernel with panels for tasks of the launch, whatever its own kernels are. A kernel without a
// named variant uses that of its tasks' own launches. Errors: as above.
[[nodiscard]] Checked<LaunchSpec> bind_kernel(const BindSource& source,
                                              const launch::Launch& launch,
                                              const launch::Kernel& kernel);

// Checks that a bound kernel has the variant that the launch plan names. Requires: its check is ok.
// Errors: G092.
[[nodiscard]] Checked<Ok> check_variant(const launch::Launch& launch, const launch::Kernel& kernel,
                                        const LaunchSpec& spec);

// Whether a launch takes over tasks of another kind than its first: a transfer that its kernels
// make, a total that they store, or a map of it. Such tasks have no kernel of their own.
[[nodiscard]] bool is_taken_over(const Plan& plan, const launch::Launch& launch, TaskId task);

}  // namespace harpe::cuda
