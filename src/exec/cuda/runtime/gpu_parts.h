#pragma once

#include "exec/cuda/runtime/device.h"
#include "exec/cuda/runtime/driver_api.h"

namespace harpe::cuda {

// A part's context, a "green context" of CUDA, and its SMs.
struct PartContext {
  CUcontext context = nullptr;
  int multiprocessors = 0;
};

// Parts of a GPU have equally many SMs. A part stays open until the process ends, because it may be
// current in any thread, and opening it again gives the same one. Thread-safe. Requires: the GPU's
// primary context is retained. Errors: G005, G008; G076 the driver cannot divide the GPU.
[[nodiscard]] Checked<PartContext> open_part(const DriverApi& driver, const GpuPart& part);

}  // namespace harpe::cuda
