#pragma once

#include <memory>
#include <vector>

#include "exec/cuda/runtime/device.h"

namespace harpe::cuda {

// Free memory of the first GPUs, whichever process uses the rest. Keeps their contexts, so that
// memory measured later does not include their creation.
class FreeMemory {
 public:
  // Errors: those of Device::open.
  [[nodiscard]] static Checked<FreeMemory> watch(const std::shared_ptr<const DriverApi>& driver,
                                                 int gpus);
  // In bytes, by GPU. Errors: G005.
  [[nodiscard]] Checked<std::vector<std::int64_t>> read() const;

 private:
  FreeMemory() = default;

  std::vector<Device> devices_;
};

}  // namespace harpe::cuda
