#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/cuda/device/copy_args.h"
#include "exec/cuda/kernels/launch_spec.h"
#include "exec/cuda/signals/device/signal_args.h"
#include "leaves/leaf.h"
#include "plan/launch_plan.h"
#include "plan/ref_layouts.h"

namespace harpe::cuda {

// A kernel that a task of the launch runs if it is alone. A similar task was prepared; the spec has
// that task's addresses.
struct LaunchAlone {
  const LaunchSpec* spec = nullptr;
  const launch::Kernel* kernel = nullptr;
  const std::vector<launch::LaidRef>* refs = nullptr;  // the operands of the launch's task
  // How much further queries are ahead of keys than in the prepared task.
  std::int64_t lead = 0;
  bool is_bound = false;  // a kernel of the launch already does this work

  // Requires: a GEMM or attention, which has one of each.
  [[nodiscard]] const launch::Arrival& arrival() const { return kernel->arrivals.front(); }
  [[nodiscard]] const launch::Panel& panel() const { return kernel->panels.front(); }
};

// Whether the places have the stated elements, at any addresses.
[[nodiscard]] inline bool are_elements(std::span<const launch::Place> places,
                                       std::span<const launch::Place> stated) {
  return std::ranges::equal(places, stated, {}, &launch::Place::span, &launch::Place::span);
}

// An operand or result of a kernel alone, and the index of its place, if it has one.
struct KernelOperand {
  StridedArray array;
  const char* what;
  std::size_t index;
};

// A map of a panel in the form that kernels take.
struct BoundMap {
  Leaf leaf = Leaf::Add;
  bool is_second = false;  // the panel's value is the second operand, not the first
  // The other operand at the positions of the panel's result, with stride 0 along axes that it
  // lacks. None if the function has one operand.
  std::optional<StridedArray> other;
  DType dtype = DType::F32;  // of the other operand
};

// One kernel of a launch whose addresses are to be found: what a kernel's folder needs to bind it.
class KernelBinding {
 public:
  virtual ~KernelBinding() = default;

  [[nodiscard]] virtual const launch::Kernel& kernel() const = 0;
  // The kernels that the launch's tasks would run alone, in order. Binding marks those that the
  // kernel replaces as bound.
  [[nodiscard]] virtual std::span<LaunchAlone> alone() const = 0;
  // Makes diagnostic G092.
  [[nodiscard]] virtual Diag refuse(const std::string& reason) const = 0;
  // The operand, which alone lies at `from`, at its place `to` of the launch plan. An operand
  // without a place stays where it is. Errors: G092.
  [[nodiscard]] virtual Checked<StridedArray> place(const LaunchAlone& one,
                                                    const KernelOperand& operand,
                                                    std::span<const launch::Place> from,
                                                    std::span<const launch::Place> to) const = 0;
  // A map of a panel whose result alone is `result`, at `from`. Errors: G092.
  [[nodiscard]] virtual Checked<BoundMap> bind_map(const LaunchAlone& one,
                                                   const StridedArray& result,
                                                   const launch::Place& from,
                                                   const launch::Map& map) const = 0;
  // Whether no kernel of the execution writes there: the place is an input of the rank itself.
  [[nodiscard]] virtual bool is_fixed(const launch::Place& place) const = 0;
  [[nodiscard]] virtual device::FlagWait await(std::optional<launch::SignalId> signal) const = 0;
  // None if a test drops the signal.
  [[nodiscard]] virtual std::optional<device::RaiseTarget> raised(
      const launch::Raise& raise) const = 0;
  // Whether the data carry the signal themselves (device/in_data.cuh).
  [[nodiscard]] virtual bool is_in_data(launch::SignalId signal) const = 0;
  [[nodiscard]] virtual device::WaitContext wait_context() const = 0;
  // The kernel's fused copies. Errors: G092 no task makes such a copy.
  [[nodiscard]] virtual Checked<std::vector<device::CopyJob>> copies() const = 0;
  // The address of the numbers of rows in use of an allocation; null: it has none.
  [[nodiscard]] virtual std::int32_t* rows_used_of(AllocId alloc) const = 0;
};

// Index of the first element that fits, searched from `begin` on and then from the start.
template <class Range, class Fits>
[[nodiscard]] std::optional<std::size_t> find_around(const Range& all, std::size_t begin,
                                                     const Fits& fits) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t at = (begin + i) % all.size();
    if (fits(all[at])) return at;
  }
  return std::nullopt;
}

}  // namespace harpe::cuda
