#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/cuda/executor/bind_kernel.h"

namespace harpe::cuda {

// A kernel that a task of the launch runs alone. Its addresses are those of the task that was
// prepared, which it is like.
struct LaunchAlone {
  const LaunchSpec* spec = nullptr;
  const launch::Kernel* kernel = nullptr;
  const std::vector<LaidRef>* refs = nullptr;  // what the launch's task names
  std::int64_t lead = 0;                       // TaskAlone::leads
  bool is_bound = false;                       // a kernel of the launch does it

  // Of a GEMM or attention, which has one of each.
  [[nodiscard]] const launch::Arrival& arrival() const { return kernel->arrivals.front(); }
  [[nodiscard]] const launch::Panel& panel() const { return kernel->panels.front(); }
};

// Whether these are the elements that are stated, wherever they lie.
[[nodiscard]] bool are_elements(std::span<const launch::Place> places,
                                std::span<const launch::Place> stated);

// An operand or result of a kernel alone: one of a list of places, where it has one.
struct KernelOperand {
  StridedArray array;
  const char* what;
  std::size_t index;
};

// One kernel of a launch on its way to addresses.
struct KernelBinding {
  const BindSource& source;
  const launch::Launch& launch;
  const launch::Kernel& kernel;
  KernelPlaces& places;
  std::span<LaunchAlone> alone;  // of the launch's tasks, in order

  // G092.
  [[nodiscard]] Diag refuse(const std::string& reason) const;
  // The array that is at `from` alone, where the launch plan has it; without a place, where it is.
  // Errors: G092.
  [[nodiscard]] Checked<StridedArray> place(const LaunchAlone& one, const KernelOperand& operand,
                                            std::span<const launch::Place> from,
                                            std::span<const launch::Place> to) const;
  [[nodiscard]] device::FlagWait await(std::optional<launch::SignalId> signal) const;
  [[nodiscard]] device::WaitContext wait_context() const;
  // The kernel's fused copies. Errors: G092 no task copies that.
  [[nodiscard]] Checked<std::vector<device::CopyJob>> copies() const;
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

// Marks the launches alone that the kernel does as bound. Errors: G092.
[[nodiscard]] Checked<GemmSpec> bind_gemm(const KernelBinding& binding);
[[nodiscard]] Checked<AttentionSpec> bind_attention(const KernelBinding& binding);

}  // namespace harpe::cuda
