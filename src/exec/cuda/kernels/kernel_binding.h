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

// A kernel that a task of the launch runs alone. Its addresses are those of the task that was
// prepared, which it is like.
struct LaunchAlone {
  const LaunchSpec* spec = nullptr;
  const launch::Kernel* kernel = nullptr;
  const std::vector<launch::LaidRef>* refs = nullptr;  // what the launch's task names
  // How much further queries are ahead of keys than in the task that was prepared.
  std::int64_t lead = 0;
  bool is_bound = false;  // a kernel of the launch does it

  // Of a GEMM or attention, which has one of each.
  [[nodiscard]] const launch::Arrival& arrival() const { return kernel->arrivals.front(); }
  [[nodiscard]] const launch::Panel& panel() const { return kernel->panels.front(); }
};

// Whether these are the elements that are stated, wherever they lie.
[[nodiscard]] inline bool are_elements(std::span<const launch::Place> places,
                                       std::span<const launch::Place> stated) {
  return std::ranges::equal(places, stated, {}, &launch::Place::span, &launch::Place::span);
}

// An operand or result of a kernel alone: one of a list of places, where it has one.
struct KernelOperand {
  StridedArray array;
  const char* what;
  std::size_t index;
};

// A map of a panel, as a kernel applies it.
struct BoundMap {
  Leaf leaf = Leaf::Add;
  bool is_second = false;  // the panel's value is the second operand, not the first
  // The other operand at the positions of the panel's result, with strides of 0 along axes that it
  // lacks; none of a function of one operand.
  std::optional<StridedArray> other;
  DType dtype = DType::F32;  // of the other operand
};

// One kernel of a launch on its way to addresses: what a kernel's folder asks for to bind it.
class KernelBinding {
 public:
  virtual ~KernelBinding() = default;

  [[nodiscard]] virtual const launch::Kernel& kernel() const = 0;
  // What the launch's tasks run alone, in order. What the kernel does is marked as bound.
  [[nodiscard]] virtual std::span<LaunchAlone> alone() const = 0;
  // G092.
  [[nodiscard]] virtual Diag refuse(const std::string& reason) const = 0;
  // The array that is at `from` alone, where the launch plan has it; without a place, where it is.
  // Errors: G092.
  [[nodiscard]] virtual Checked<StridedArray> place(const LaunchAlone& one,
                                                    const KernelOperand& operand,
                                                    std::span<const launch::Place> from,
                                                    std::span<const launch::Place> to) const = 0;
  // Of a panel whose result alone is `result`, at `from`. Errors: G092.
  [[nodiscard]] virtual Checked<BoundMap> bind_map(const LaunchAlone& one,
                                                   const StridedArray& result,
                                                   const launch::Place& from,
                                                   const launch::Map& map) const = 0;
  // Whether no kernel of the execution writes there: an input of the rank itself.
  [[nodiscard]] virtual bool is_fixed(const launch::Place& place) const = 0;
  [[nodiscard]] virtual device::FlagWait await(std::optional<launch::SignalId> signal) const = 0;
  // None: the signal is to be lost (tests).
  [[nodiscard]] virtual std::optional<device::RaiseTarget> raised(
      const launch::Raise& raise) const = 0;
  // Whether the signal travels in the data that it is of.
  [[nodiscard]] virtual bool is_in_data(launch::SignalId signal) const = 0;
  [[nodiscard]] virtual device::WaitContext wait_context() const = 0;
  // The kernel's fused copies. Errors: G092 no task copies that.
  [[nodiscard]] virtual Checked<std::vector<device::CopyJob>> copies() const = 0;
  // Where it is counted how many rows of an allocation are used; null: they are not counted.
  [[nodiscard]] virtual std::int32_t* rows_used_of(AllocId alloc) const = 0;
};

// Index of the first that fits from `begin` on, then around the end.
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
