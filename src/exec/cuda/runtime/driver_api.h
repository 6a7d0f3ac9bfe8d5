#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include "support/diag.h"
#include "support/result.h"

namespace harpe::cuda {

// The driver's functions, under their own names: `driver.cuMemAlloc(…)`. cuda.h maps some names to
// the version that it declares, and does so here too.
struct DriverApi {
#define HP_CUDA(FUNCTION) decltype(&::FUNCTION) FUNCTION = nullptr;
#include "exec/cuda/runtime/driver_api.def"
#undef HP_CUDA
  // As in CUDA 12.0; newer headers declare other functions under these names.
  CUresult (*capture_info)(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                           CUgraph* graph, const CUgraphNode** after,
                           std::size_t* count) = nullptr;  // cuStreamGetCaptureInfo
  CUresult (*set_capture_after)(CUstream stream, CUgraphNode* nodes, std::size_t count,
                                unsigned flags) = nullptr;  // cuStreamUpdateCaptureDependencies
  // Null in drivers before CUDA 12.4.
#define HP_CUDA(FUNCTION) decltype(&::FUNCTION) FUNCTION = nullptr;
#include "exec/cuda/runtime/driver_api_12_4.def"
#undef HP_CUDA
};

// Opens and initialises NVIDIA's driver; `file` names another library for it. Errors: G002, G003;
// G005 there is no GPU, or the driver cannot run.
[[nodiscard]] Checked<std::shared_ptr<const DriverApi>> open_driver(
    const std::optional<std::string>& file = std::nullopt);

// The error of a driver call.
struct CudaError {
  std::string call;  // "cuMemAlloc"
  CUresult status = CUDA_SUCCESS;
  std::string name;    // "CUDA_ERROR_OUT_OF_MEMORY"
  std::string reason;  // "out of memory"
  std::source_location where;
};

// All results of driver calls are checked here:
//   HP_REQUIRE_OK(cuda_call(driver, "cuMemAlloc", driver.cuMemAlloc(&address, bytes)));
[[nodiscard]] Result<Ok, CudaError> cuda_call(
    const DriverApi& driver, std::string_view call, CUresult status,
    std::source_location where = std::source_location::current());

// G005.
[[nodiscard]] Diag to_diag(const CudaError& error);
// The same; G008 if the GPU lacks the memory for `what`.
[[nodiscard]] Diag to_diag(const CudaError& error, std::int64_t gpu, std::string_view what);
// The same as a refusal, for work that may also fail in other ways.
[[nodiscard]] Checked<Ok> driver_call(const DriverApi& driver, std::string_view call,
                                      CUresult status,
                                      std::source_location where = std::source_location::current());

}  // namespace harpe::cuda
