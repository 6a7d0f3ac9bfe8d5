#include "exec/cuda/kernels/backward/backward.h"
#include "offers/gpu_kernels.h"

namespace harpe::cuda {
namespace {

class BackwardLaunch final : public LaunchOf<BackwardSpec> {
 public:
  using LaunchOf::LaunchOf;

  std::unique_ptr<KernelLaunch> copy() const override {
    return std::make_unique<BackwardLaunch>(*this);
  }
  std::string_view name() const override { return kBackwardSm90; }
  Checked<Ok> check(int /*multiprocessors*/) const override { return cuda::check(spec); }
};

}  // namespace

std::unique_ptr<KernelLaunch> make_launch(BackwardSpec spec) {
  return std::make_unique<BackwardLaunch>(std::move(spec));
}

}  // namespace harpe::cuda
