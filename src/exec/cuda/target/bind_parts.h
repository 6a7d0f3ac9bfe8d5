#pragma once

#include "exec/cuda/kernels/kernel_binding.h"
#include "exec/cuda/target/bind_kernel.h"

namespace harpe::cuda {

// A kernel of a launch, bound to the places of its source.
class PlacedBinding final : public KernelBinding {
 public:
  // Requires: all arguments outlive this.
  PlacedBinding(const BindSource& source, const launch::Launch& launch,
                const launch::Kernel& kernel, KernelPlaces& places, std::span<LaunchAlone> alone)
      : source_(source), launch_(launch), kernel_(kernel), places_(places), alone_(alone) {}

  const launch::Kernel& kernel() const override { return kernel_; }
  std::span<LaunchAlone> alone() const override { return alone_; }
  Diag refuse(const std::string& reason) const override;
  Checked<StridedArray> place(const LaunchAlone& one, const KernelOperand& operand,
                              std::span<const launch::Place> from,
                              std::span<const launch::Place> to) const override;
  Checked<BoundMap> bind_map(const LaunchAlone& one, const StridedArray& result,
                             const launch::Place& from, const launch::Map& map) const override;
  bool is_fixed(const launch::Place& place) const override;
  device::FlagWait await(std::optional<launch::SignalId> signal) const override;
  std::optional<device::RaiseTarget> raised(const launch::Raise& raise) const override;
  bool is_in_data(launch::SignalId signal) const override;
  device::WaitContext wait_context() const override;
  Checked<std::vector<device::CopyJob>> copies() const override;
  std::int32_t* rows_used_of(AllocId alloc) const override;

 private:
  const BindSource& source_;
  const launch::Launch& launch_;
  const launch::Kernel& kernel_;
  KernelPlaces& places_;
  std::span<LaunchAlone> alone_;
};

}  // namespace harpe::cuda
