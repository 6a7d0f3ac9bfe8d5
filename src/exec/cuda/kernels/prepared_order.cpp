#include "exec/cuda/kernels/prepared_order.h"

namespace harpe::cuda {
namespace {

class PreparedOrder final : public PreparedKernel {
 public:
  explicit PreparedOrder(LibraryOrder order) : order_(std::move(order)) {}

  Result<Ok, CudaError> launch(CUstream stream) const override {
    const Checked<Ok> ordered = order_.order(stream);
    if (ordered.ok()) return Ok{};
    return CudaError{.call = order_.call,
                     .status = CUDA_ERROR_UNKNOWN,
                     .name = order_.library,
                     .reason = render_message(ordered.error()),
                     .where = {}};
  }
  bool meets_others() const override { return order_.meets_others; }

 private:
  LibraryOrder order_;
};

}  // namespace

std::unique_ptr<PreparedKernel> prepare_order(LibraryOrder order) {
  return std::make_unique<PreparedOrder>(std::move(order));
}

}  // namespace harpe::cuda
