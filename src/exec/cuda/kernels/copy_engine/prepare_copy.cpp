#include "exec/cuda/kernels/copy_engine/copy_launch.h"
#include "exec/cuda/kernels/prepared_kernel.h"

namespace harpe::cuda {
namespace {

CUresult enqueue_rows(const DriverApi& driver, const CopyLaunch& copy, CUstream stream) {
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  rows.srcDevice = copy.from;
  rows.srcPitch = static_cast<std::size_t>(copy.from_pitch);
  rows.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  rows.dstDevice = copy.to;
  rows.dstPitch = static_cast<std::size_t>(copy.to_pitch);
  rows.WidthInBytes = static_cast<std::size_t>(copy.bytes);
  rows.Height = static_cast<std::size_t>(copy.rows);
  return driver.cuMemcpy2DAsync(&rows, stream);
}

class PreparedCopy final : public PreparedKernel {
 public:
  PreparedCopy(const DriverApi& driver, const CopyLaunch& copy) : driver_(&driver), copy_(copy) {}

  Result<Ok, CudaError> launch(CUstream stream) const override {
    if (copy_.rows > 1) {
      return cuda_call(*driver_, "cuMemcpy2DAsync", enqueue_rows(*driver_, copy_, stream));
    }
    return cuda_call(*driver_, "cuMemcpyAsync",
                     driver_->cuMemcpyAsync(copy_.to, copy_.from,
                                            static_cast<std::size_t>(copy_.bytes), stream));
  }

 private:
  const DriverApi* driver_;
  CopyLaunch copy_;
};

}  // namespace

Checked<std::unique_ptr<PreparedKernel>> prepare_copy_engine(const KernelLaunch& launch,
                                                             const LaunchTools& tools) {
  const auto* const spec = find_spec<CopyLaunch>(launch);
  if (spec == nullptr) return std::unique_ptr<PreparedKernel>();
  return std::unique_ptr<PreparedKernel>(
      std::make_unique<PreparedCopy>(tools.kernels.device().driver(), *spec));
}

}  // namespace harpe::cuda
