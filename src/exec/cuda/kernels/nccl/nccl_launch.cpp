#include "exec/cuda/kernels/nccl/nccl_launch.h"

namespace harpe::library {
namespace {

class NcclLaunch final : public cuda::LaunchOf<NcclCall> {
 public:
  using LaunchOf::LaunchOf;

  std::unique_ptr<KernelLaunch> copy() const override {
    return std::make_unique<NcclLaunch>(*this);
  }
  std::string_view name() const override { return "nccl"; }
};

}  // namespace

std::unique_ptr<cuda::KernelLaunch> make_launch(NcclCall call) {
  return std::make_unique<NcclLaunch>(std::move(call));
}

}  // namespace harpe::library
