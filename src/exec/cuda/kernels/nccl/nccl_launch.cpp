#include "exec/cuda/kernels/nccl/nccl_launch.h"

#include "exec/cuda/kernels/library_launch.h"

namespace harpe::library {
namespace {

class NcclLaunch final : public cuda::LaunchOf<NcclCall> {
 public:
  using LaunchOf::LaunchOf;

  std::unique_ptr<KernelLaunch> copy() const override {
    return std::make_unique<NcclLaunch>(*this);
  }
  std::string_view name() const override { return "nccl"; }
  Checked<std::unique_ptr<cuda::PreparedKernel>> prepare(
      const cuda::LaunchTools& /*tools*/) const override {
    return cuda::prepare_order(
        {.order = [call = spec](CUstream stream) { return call.order(stream); },
         .library = "NCCL",
         .call = "ncclGroupEnd",
         .meets_others = true});
  }
};

}  // namespace

std::unique_ptr<cuda::KernelLaunch> make_launch(NcclCall call) {
  return std::make_unique<NcclLaunch>(std::move(call));
}

}  // namespace harpe::library
