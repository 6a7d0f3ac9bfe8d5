#include "exec/cuda/runtime/driver_api.h"

#include <filesystem>

#include "exec/cuda/runtime/library.h"

namespace harpe::cuda {
namespace {

// Every function is requested in its version of CUDA 12.0, which newer drivers still provide with
// the same type.
constexpr int kApiVersion = 12000;
constexpr int kLaterApiVersion = 12040;

using GetAddress = decltype(&::cuGetProcAddress);

LibraryPlaces driver_places(const std::optional<std::string>& file) {
  return {.what = "NVIDIA's driver",
          .names = {file.value_or("libcuda.so.1")},
          .folders = {},
          .remedy = "install the driver, 525 or newer, on a machine with a GPU"};
}

Checked<DriverApi> find_functions(const Library& library) {
  HP_TRY(void* const address, library.find("cuGetProcAddress_v2"));
  const auto get_address = reinterpret_cast<GetAddress>(address);
  std::optional<Diag> lacking;  // the first missing function
  const auto look_for = [&](const char* symbol, int version) -> void* {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    const CUresult result =
        get_address(symbol, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    return result == CUDA_SUCCESS ? found : nullptr;
  };
  const auto find = [&](const char* symbol) {
    void* const found = look_for(symbol, kApiVersion);
    if (found == nullptr && !lacking) {
      lacking = make_diag(DiagCode::G003, {{"path", library.path()}, {"symbol", symbol}});
    }
    return found;
  };
  DriverApi driver;
#define HP_CUDA(FUNCTION) \
  driver.FUNCTION = reinterpret_cast<decltype(&::FUNCTION)>(find(#FUNCTION));
#include "exec/cuda/runtime/driver_api.def"
#undef HP_CUDA
  driver.capture_info =
      reinterpret_cast<decltype(driver.capture_info)>(find("cuStreamGetCaptureInfo"));
  driver.set_capture_after = reinterpret_cast<decltype(driver.set_capture_after)>(
      find("cuStreamUpdateCaptureDependencies"));
#define HP_CUDA(FUNCTION) \
  driver.FUNCTION = reinterpret_cast<decltype(&::FUNCTION)>(look_for(#FUNCTION, kLaterApiVersion));
#include "exec/cuda/runtime/driver_api_12_4.def"
#undef HP_CUDA
  if (lacking) return *lacking;
  return driver;
}

std::string place_of(const CudaError& error) {
  const std::string file = std::filesystem::path(error.where.file_name()).filename().string();
  return "called in " + file + ":" + std::to_string(error.where.line());
}

}  // namespace

Checked<std::shared_ptr<const DriverApi>> open_driver(const std::optional<std::string>& file) {
  HP_TRY(const Library library, Library::open(driver_places(file)));
  HP_TRY(const DriverApi driver, find_functions(library));
  HP_REQUIRE_OK(driver_call(driver, "cuInit", driver.cuInit(0)));
  return std::make_shared<const DriverApi>(driver);
}

Result<Ok, CudaError> cuda_call(const DriverApi& driver, std::string_view call, CUresult status,
                                std::source_location where) {
  if (status == CUDA_SUCCESS) return Ok{};
  const char* name = nullptr;
  const char* reason = nullptr;
  driver.cuGetErrorName(status, &name);
  driver.cuGetErrorString(status, &reason);
  return CudaError{.call = std::string(call),
                   .status = status,
                   .name = name != nullptr ? name : "error " + std::to_string(status),
                   .reason = reason != nullptr ? reason : "the driver has no text for it",
                   .where = where};
}

Diag to_diag(const CudaError& error) {
  return with_note(
      make_diag(DiagCode::G005,
                {{"call", error.call}, {"name", error.name}, {"reason", error.reason}}),
      place_of(error));
}

Diag to_diag(const CudaError& error, std::int64_t gpu, std::string_view what) {
  if (error.status != CUDA_ERROR_OUT_OF_MEMORY) return to_diag(error);
  return with_note(make_diag(DiagCode::G008, {{"gpu", gpu}, {"what", what}}), place_of(error));
}

Checked<Ok> driver_call(const DriverApi& driver, std::string_view call, CUresult status,
                        std::source_location where) {
  const Result<Ok, CudaError> result = cuda_call(driver, call, status, where);
  if (!result.ok()) return to_diag(result.error());
  return Ok{};
}

}  // namespace harpe::cuda
