#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/cuda/jit/kernel_cache.h"
#include "exec/cuda/jit/kernel_variant.h"
#include "exec/cuda/jit/nvrtc.h"
#include "exec/cuda/jit/resources.h"
#include "exec/cuda/runtime/device.h"

namespace harpe::cuda {

// A kernel on a GPU, ready to run. Lives as long as its library.
struct LoadedKernel {
  CUfunction function = nullptr;
  std::int32_t threads = 0;       // of a block
  std::int64_t shared_bytes = 0;  // dynamic, of a block
  int blocks_per_multiprocessor = 0;
  KernelReport report;
  CacheUse use = CacheUse::Off;
  std::vector<Diag> problems;  // of the cache; to be reported as warnings
};

// The grid and clusters of one launch.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid = {1, 1, 1};     // blocks
  std::array<std::uint32_t, 3> cluster = {1, 1, 1};  // blocks of one cluster; divides the grid
  // While the stream's previous kernel ends; the kernel itself waits for that end
  // (device/fences.cuh).
  bool begins_early = false;
};

// Kernels of one GPU, each compiled or read from the cache on first use. Thread-safe; threads that
// load the same kernel wait for each other, others do not.
class KernelLibrary {
 public:
  // `headers` must outlive this. `cache`: a folder, or none.
  KernelLibrary(Device device, Nvrtc compiler, std::optional<std::string> cache,
                std::span<const HeaderText> headers = device_headers(), CompileNotice notice = {});
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;
  ~KernelLibrary();

  [[nodiscard]] const Device& device() const { return device_; }

  // Requires: one source per name. Errors: G004, G005, G010, G036; failures are not kept, so the
  // next call tries again.
  [[nodiscard]] Checked<const LoadedKernel*> load(const KernelVariant& variant);

 private:
  struct Slot;
  [[nodiscard]] std::shared_ptr<Slot> slot_of(const KernelVariant& variant);
  [[nodiscard]] Checked<Ok> fill(Slot& slot, const KernelVariant& variant) const;

  Device device_;
  Nvrtc compiler_;
  std::optional<std::string> cache_;
  std::span<const HeaderText> headers_;
  CompileNotice notice_;
  std::mutex mutex_;  // guards the map only
  std::map<std::string, std::shared_ptr<Slot>> slots_;
};

// Enqueues the kernel in a stream of its GPU. `arguments` is the kernel's only parameter, copied
// before this returns. Requires: the GPU is current for the calling thread.
[[nodiscard]] Result<Ok, CudaError> launch_bytes(const DriverApi& driver,
                                                 const LoadedKernel& kernel,
                                                 const LaunchShape& shape, CUstream stream,
                                                 const void* arguments);

template <class Arguments>
[[nodiscard]] Result<Ok, CudaError> launch(const DriverApi& driver, const LoadedKernel& kernel,
                                           const LaunchShape& shape, CUstream stream,
                                           const Arguments& arguments) {
  static_assert(std::is_trivially_copyable_v<Arguments>);
  return launch_bytes(driver, kernel, shape, stream, &arguments);
}

}  // namespace harpe::cuda
