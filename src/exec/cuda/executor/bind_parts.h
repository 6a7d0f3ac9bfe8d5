#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/cuda/executor/bind_kernel.h"

namespace harpe::cuda {

// A launch of a task alone, with the places of its operands and result: A, B and C; or queries,
// keys, values and the output.
struct LaunchAlone {
  const LaunchSpec* spec = nullptr;
  std::vector<std::optional<launch::Place>> places = {};
  bool is_bound = false;  // a kernel of the launch does it
};

// One kernel of a launch on its way to addresses.
struct KernelBinding {
  const BindSource& source;
  const launch::Launch& launch;
  const launch::Kernel& kernel;
  std::span<LaunchAlone> alone;  // of the launch's tasks, in order

  // G092.
  [[nodiscard]] Diag refuse(const std::string& reason) const;
  // The array where a place of the launch plan is; without one, where it is. Errors: G092.
  [[nodiscard]] Checked<StridedArray> place(const StridedArray& array, const char* what,
                                            const launch::Place* to) const;
  [[nodiscard]] device::FlagWait await(std::optional<launch::SignalId> signal) const;
  [[nodiscard]] device::WaitContext wait_context() const;
  // The kernel's fused copies. Errors: G092 no task copies that.
  [[nodiscard]] Checked<std::vector<device::CopyJob>> copies() const;
};

// Whether the same elements of the buffer are meant, wherever they lie.
[[nodiscard]] bool are_same_elements(const std::optional<launch::Place>& one,
                                     const launch::Place* other);
// One of a list; null where it is shorter.
[[nodiscard]] const launch::Place* place_at(const std::vector<launch::Place>& places,
                                            std::size_t index);

// Marks the launches alone that the kernel does as bound. Errors: G092.
[[nodiscard]] Checked<GemmSpec> bind_gemm(const KernelBinding& binding);
[[nodiscard]] Checked<AttentionSpec> bind_attention(const KernelBinding& binding);

}  // namespace harpe::cuda
