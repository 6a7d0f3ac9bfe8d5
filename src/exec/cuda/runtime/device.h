#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "exec/cuda/runtime/driver_api.h"
#include "support/ids.h"

namespace harpe::cuda {

using DeviceId = Id<struct DeviceTag>;  // from 0, after CUDA_VISIBLE_DEVICES

struct DeviceFacts {
  DeviceId id;
  std::string name;  // "NVIDIA H200"
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;  // of the part
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;   // L2
  std::int64_t shared_bytes = 0;  // maximum of a block
};

[[nodiscard]] Checked<int> count_devices(const DriverApi& driver);
// "NVIDIA H200". Errors: G005.
[[nodiscard]] Checked<std::string> name_of(const DriverApi& driver, DeviceId id);

// What a rank has of its GPU. Ranks that share a GPU have a part each, so that a kernel which waits
// for another rank leaves that rank its SMs.
struct GpuPart {
  // Streams of more ranks do not all get hardware queues of their own, and may wait for each other.
  static constexpr int kMost = 4;
  DeviceId gpu;
  int index = 0;
  int parts = 1;
  friend bool operator==(const GpuPart&, const GpuPart&) = default;
};

// A GPU, or a part of it, and its primary context, which is retained while any copy of this lives.
// Shared with all code of the process that uses the GPU through CUDA's runtime.
class Device {
 public:
  // Errors: G005; G006 the kernels do not support it; G007 there is no such GPU; G008. Afterwards
  // the context is current for the calling thread.
  [[nodiscard]] static Checked<Device> open(std::shared_ptr<const DriverApi> driver, DeviceId id);

  // One of the equal parts of a GPU: a context whose kernels run on SMs that the kernels of other
  // parts do not use. The whole GPU if there is one part. Errors: as `open`; G076.
  [[nodiscard]] static Checked<Device> open(std::shared_ptr<const DriverApi> driver,
                                            const GpuPart& part);

  [[nodiscard]] const DriverApi& driver() const { return *driver_; }
  [[nodiscard]] const DeviceFacts& facts() const { return facts_; }
  [[nodiscard]] CUcontext context() const { return context_; }

  // For the calling thread: calls without a stream or context then refer to this GPU.
  [[nodiscard]] Result<Ok, CudaError> make_current() const;

  // Another GPU of this process. Errors and the current context afterwards: as in `open`.
  [[nodiscard]] Checked<Device> open_peer(DeviceId id) const { return open(driver_, id); }
  // Lets kernels of this GPU read and write the memory of the peer. Errors: G005; G071 no peer
  // access.
  [[nodiscard]] Checked<Ok> reach(const Device& peer) const;

  // Bytes of DeviceMemory that this and its copies own now.
  [[nodiscard]] std::int64_t allocated_bytes() const { return *allocated_; }
  // For DeviceMemory only: `bytes` more, or fewer.
  void note_allocated(std::int64_t bytes) const { *allocated_ += bytes; }

 private:
  Device(std::shared_ptr<const DriverApi> driver, std::shared_ptr<CUctx_st> primary,
         DeviceFacts facts)
      : driver_(std::move(driver)),
        primary_(std::move(primary)),
        context_(primary_.get()),
        allocated_(std::make_shared<std::atomic<std::int64_t>>(0)),
        facts_(std::move(facts)) {}

  std::shared_ptr<const DriverApi> driver_;
  std::shared_ptr<CUctx_st> primary_;  // its context, which the contexts of parts use
  CUcontext context_;                  // of the whole GPU or of the part
  std::shared_ptr<std::atomic<std::int64_t>> allocated_;
  DeviceFacts facts_;
};

}  // namespace harpe::cuda
