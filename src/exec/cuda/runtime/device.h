#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "exec/cuda/runtime/driver_api.h"
#include "support/ids.h"

namespace harpe::cuda {

using DeviceId = Id<struct DeviceTag>;  // as CUDA_VISIBLE_DEVICES leaves them, from 0

struct DeviceFacts {
  DeviceId id;
  std::string name;  // "NVIDIA H200"
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;   // second level
  std::int64_t shared_bytes = 0;  // of a block, at most
};

[[nodiscard]] Checked<int> count_devices(const DriverApi& driver);
// "NVIDIA H200". Errors: G005.
[[nodiscard]] Checked<std::string> name_of(const DriverApi& driver, DeviceId id);

// A GPU and its primary context, which is kept while any copy of this lives. Shared with whatever
// else in the process uses the GPU through CUDA's runtime.
class Device {
 public:
  // Errors: G005; G006 the kernels are not for it; G007 there is no such GPU; G008. The context is
  // current for the calling thread afterwards.
  [[nodiscard]] static Checked<Device> open(std::shared_ptr<const DriverApi> driver, DeviceId id);

  [[nodiscard]] const DriverApi& driver() const { return *driver_; }
  [[nodiscard]] const DeviceFacts& facts() const { return facts_; }
  [[nodiscard]] CUcontext context() const { return context_.get(); }

  // For the calling thread: calls that name no stream or context then mean this GPU.
  [[nodiscard]] Result<Ok, CudaError> make_current() const;

  // Another GPU of this process. Errors, and what is current afterwards, as of `open`.
  [[nodiscard]] Checked<Device> open_peer(DeviceId id) const { return open(driver_, id); }
  // Lets kernels of this GPU read and write the memory of the peer. Errors: G005; G071 they are
  // no peers.
  [[nodiscard]] Checked<Ok> reach(const Device& peer) const;

  // Bytes of DeviceMemory that this and its copies have now.
  [[nodiscard]] std::int64_t allocated_bytes() const { return *allocated_; }
  // Of DeviceMemory alone: so many more, or fewer.
  void note_allocated(std::int64_t bytes) const { *allocated_ += bytes; }

 private:
  Device(std::shared_ptr<const DriverApi> driver, std::shared_ptr<CUctx_st> context,
         DeviceFacts facts)
      : driver_(std::move(driver)),
        context_(std::move(context)),
        allocated_(std::make_shared<std::atomic<std::int64_t>>(0)),
        facts_(std::move(facts)) {}

  std::shared_ptr<const DriverApi> driver_;
  std::shared_ptr<CUctx_st> context_;
  std::shared_ptr<std::atomic<std::int64_t>> allocated_;
  DeviceFacts facts_;
};

}  // namespace harpe::cuda
