#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/support/fake_driver.h"

// A libcuda.so.1 without a GPU, for programs that open the driver themselves. It reports FAKE_GPUS
// devices (default 2), accepts every launch and runs none. It refuses tensor maps by the rules of
// cuTensorMapEncodeTiled in CUDA 13's manual.
namespace harpe::testing_support {
namespace {

CUresult done() { return CUDA_SUCCESS; }

// Returns distinct addresses, which nothing dereferences: they distinguish some launches.
CUresult allocate(CUdeviceptr* address, std::size_t bytes) {
  constexpr std::uint64_t kAlign = 512;
  static std::uint64_t next = std::uint64_t{1} << 40;
  *address = next;
  next += (bytes / kAlign + 1) * kAlign;
  return CUDA_SUCCESS;
}

CUresult attribute(int* value, CUdevice_attribute which, CUdevice /*device*/) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 227 << 10;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

std::uint64_t bytes_of(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ? 4 : 2;
}

CUresult encode(CUtensorMap* /*map*/, CUtensorMapDataType type, cuuint32_t rank, void* address,
                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                const cuuint32_t* /*steps*/, CUtensorMapInterleave /*interleave*/,
                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion /*promotion*/,
                CUtensorMapFloatOOBfill /*fill*/) {
  constexpr std::uint64_t kAlign = 16;
  constexpr std::uint64_t kMostStride = std::uint64_t{1} << 40;
  constexpr std::uint64_t kMostSize = std::uint64_t{1} << 32;
  constexpr std::uint64_t kSwizzled = 128;
  const std::uint64_t row = box[0] * bytes_of(type);
  bool fits = reinterpret_cast<std::uint64_t>(address) % kAlign == 0 && row % kAlign == 0 &&
              (swizzle != CU_TENSOR_MAP_SWIZZLE_128B || row <= kSwizzled);
  for (cuuint32_t axis = 0; axis < rank; ++axis) {
    fits = fits && sizes[axis] > 0 && sizes[axis] <= kMostSize && box[axis] > 0 && box[axis] <= 256;
    if (axis + 1 < rank) {
      fits = fits && strides[axis] % kAlign == 0 && strides[axis] < kMostStride;
    }
  }
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

cuda::DriverApi make_driver() {
  cuda::DriverApi driver = *make_fake_driver();
  const char* const gpus = std::getenv("FAKE_GPUS");
  fake_gpu().devices = gpus == nullptr ? 2 : std::atoi(gpus);
  driver.cuMemAlloc = allocate;
  driver.cuMemFree = [](CUdeviceptr) { return done(); };
  driver.cuDeviceGetAttribute = attribute;
  driver.cuTensorMapEncodeTiled = encode;
  driver.cuDriverGetVersion = [](int* version) {
    *version = 13000;
    return done();
  };
  return driver;
}

}  // namespace
}  // namespace harpe::testing_support

// Functions that the fake does not define do nothing and succeed.
extern "C" CUresult cuGetProcAddress_v2(const char* symbol, void** function, int /*version*/,
                                        cuuint64_t /*flags*/,
                                        CUdriverProcAddressQueryResult* /*status*/) {
  static const harpe::cuda::DriverApi driver = harpe::testing_support::make_driver();
  *function = reinterpret_cast<void*>(harpe::testing_support::done);
#define HP_CUDA(FUNCTION)                                         \
  if (std::string_view(symbol) == #FUNCTION && driver.FUNCTION) { \
    *function = reinterpret_cast<void*>(driver.FUNCTION);         \
  }
#include "exec/cuda/runtime/driver_api.def"
#include "exec/cuda/runtime/driver_api_12_4.def"
#undef HP_CUDA
  return CUDA_SUCCESS;
}
