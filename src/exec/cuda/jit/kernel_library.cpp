#include "exec/cuda/jit/kernel_library.h"

namespace harpe::cuda {

// One kernel's entry, filled under its mutex.
struct KernelLibrary::Slot {
  std::mutex mutex;
  std::string source;
  CUmodule module = nullptr;
  std::optional<LoadedKernel> kernel;
};

namespace {

// Each kernel must request dynamic shared memory above 48 KiB.
Checked<Ok> allow_shared_memory(const DriverApi& driver, const LoadedKernel& kernel) {
  return driver_call(
      driver, "cuFuncSetAttribute",
      driver.cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                static_cast<int>(kernel.shared_bytes)));
}

Checked<int> blocks_at_once(const DriverApi& driver, const LoadedKernel& kernel) {
  int blocks = 0;
  HP_REQUIRE_OK(driver_call(driver, "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                                &blocks, kernel.function, kernel.threads,
                                static_cast<std::size_t>(kernel.shared_bytes))));
  return blocks;
}

}  // namespace

KernelLibrary::KernelLibrary(Device device, Nvrtc compiler, std::optional<std::string> cache,
                             std::span<const HeaderText> headers, CompileNotice notice)
    : device_(std::move(device)),
      compiler_(std::move(compiler)),
      cache_(std::move(cache)),
      headers_(headers),
      notice_(std::move(notice)) {}

KernelLibrary::~KernelLibrary() {
  static_cast<void>(device_.make_current());
  for (const auto& [name, slot] : slots_) {
    if (slot->module != nullptr) device_.driver().cuModuleUnload(slot->module);
  }
}

std::shared_ptr<KernelLibrary::Slot> KernelLibrary::slot_of(const KernelVariant& variant) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Slot>& slot = slots_[variant.name];
  if (slot == nullptr) {
    slot = std::make_shared<Slot>();
    slot->source = variant.source;
  }
  HP_CHECK(slot->source == variant.source, "two kernels are called `" + variant.name + "`");
  return slot;
}

Checked<const LoadedKernel*> KernelLibrary::load(const KernelVariant& variant) {
  const std::shared_ptr<Slot> slot = slot_of(variant);
  const std::lock_guard lock(slot->mutex);
  if (!slot->kernel) HP_REQUIRE_OK(fill(*slot, variant));
  return &*slot->kernel;
}

Checked<Ok> KernelLibrary::fill(Slot& slot, const KernelVariant& variant) const {
  HP_TRY(CachedKernel made, compile_variant(compiler_, cache_, variant, headers_, notice_));
  LoadedKernel kernel{.function = nullptr,
                      .threads = variant.threads,
                      .shared_bytes = variant.shared_bytes,
                      .blocks_per_multiprocessor = 0,
                      .report = {},
                      .use = made.use,
                      .problems = std::move(made.problems)};
  HP_TRY(kernel.report, inspect(variant, made.kernel));
  const DriverApi& driver = device_.driver();
  HP_REQUIRE_OK(driver_call(driver, "cuCtxSetCurrent", driver.cuCtxSetCurrent(device_.context())));
  if (slot.module == nullptr) {
    const Result<Ok, CudaError> loaded =
        cuda_call(driver, "cuModuleLoadData",
                  driver.cuModuleLoadData(&slot.module, made.kernel.cubin.data()));
    if (!loaded.ok()) {
      return to_diag(loaded.error(), device_.facts().id.value, "kernel `" + variant.name + "`");
    }
  }
  HP_REQUIRE_OK(driver_call(driver, "cuModuleGetFunction",
                            driver.cuModuleGetFunction(&kernel.function, slot.module,
                                                       entry_point(variant.name).c_str())));
  HP_REQUIRE_OK(allow_shared_memory(driver, kernel));
  HP_TRY(kernel.blocks_per_multiprocessor, blocks_at_once(driver, kernel));
  slot.kernel = std::move(kernel);
  return Ok{};
}

Result<Ok, CudaError> launch_bytes(const DriverApi& driver, const LoadedKernel& kernel,
                                   const LaunchShape& shape, CUstream stream,
                                   const void* arguments) {
  std::array<CUlaunchAttribute, 2> attributes{};
  CUlaunchAttribute& cluster = attributes[0];
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim.x = shape.cluster[0];
  cluster.value.clusterDim.y = shape.cluster[1];
  cluster.value.clusterDim.z = shape.cluster[2];
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[1].value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = shape.grid[0];
  config.gridDimY = shape.grid[1];
  config.gridDimZ = shape.grid[2];
  config.blockDimX = static_cast<unsigned>(kernel.threads);
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.sharedMemBytes = static_cast<unsigned>(kernel.shared_bytes);
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = shape.begins_early ? 2 : 1;
  // The driver only reads through the pointer.
  void* parameter = const_cast<void*>(arguments);
  return cuda_call(driver, "cuLaunchKernelEx",
                   driver.cuLaunchKernelEx(&config, kernel.function, &parameter, nullptr));
}

}  // namespace harpe::cuda
