#include "exec/cuda/runtime/gpu_parts.h"

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace harpe::cuda {
namespace {

// The SMs of a part come in whole groups of so many, which lie in one GPC: clusters fit into them.
constexpr unsigned kAligned = 8;

Checked<PartContext> divide(const DriverApi& driver, const GpuPart& wanted) {
  if (driver.cuGreenCtxCreate == nullptr) {
    return make_diag(DiagCode::G076, {{"gpu", wanted.gpu.value}, {"parts", wanted.parts}});
  }
  CUdevice gpu{};
  CUdevResource all{};
  HP_REQUIRE_OK(driver_call(driver, "cuDeviceGet", driver.cuDeviceGet(&gpu, wanted.gpu.value)));
  HP_REQUIRE_OK(driver_call(driver, "cuDeviceGetDevResource",
                            driver.cuDeviceGetDevResource(gpu, &all, CU_DEV_RESOURCE_TYPE_SM)));
  auto parts = static_cast<unsigned>(wanted.parts);
  const unsigned multiprocessors = all.sm.smCount / parts / kAligned * kAligned;
  std::vector<CUdevResource> groups(parts);
  HP_REQUIRE_OK(driver_call(driver, "cuDevSmResourceSplitByCount",
                            driver.cuDevSmResourceSplitByCount(groups.data(), &parts, &all, nullptr,
                                                               0, multiprocessors)));
  HP_CHECK(parts == groups.size(), "a GPU has SMs for every part");
  CUdevResource& own = groups[static_cast<std::size_t>(wanted.index)];
  CUdevResourceDesc described = nullptr;
  HP_REQUIRE_OK(driver_call(driver, "cuDevResourceGenerateDesc",
                            driver.cuDevResourceGenerateDesc(&described, &own, 1)));
  CUgreenCtx made = nullptr;
  const Result<Ok, CudaError> created =
      cuda_call(driver, "cuGreenCtxCreate",
                driver.cuGreenCtxCreate(&made, described, gpu, CU_GREEN_CTX_DEFAULT_STREAM));
  if (!created.ok()) return to_diag(created.error(), wanted.gpu.value, "one more rank");
  PartContext part{.multiprocessors = static_cast<int>(own.sm.smCount)};
  HP_REQUIRE_OK(
      driver_call(driver, "cuCtxFromGreenCtx", driver.cuCtxFromGreenCtx(&part.context, made)));
  return part;
}

}  // namespace

Checked<PartContext> open_part(const DriverApi& driver, const GpuPart& part) {
  HP_CHECK(0 <= part.index && part.index < part.parts, "there is no such part");
  static std::mutex mutex;
  static std::map<std::tuple<DeviceId, int, int>, PartContext> known;  // by GPU, parts and index
  const std::lock_guard lock(mutex);
  const std::tuple key(part.gpu, part.parts, part.index);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  HP_TRY(const PartContext made, divide(driver, part));
  known.emplace(key, made);
  return made;
}

}  // namespace harpe::cuda
