#pragma once

#include <memory>
#include <vector>

#include "exec/cuda/runtime/device.h"

namespace harpe::cuda {

// How much memory the first GPUs have left, whoever has the rest. Keeps their contexts, so that
// what is asked for later is not one of these.
class FreeMemory {
 public:
  // Errors: those of Device::open.
  [[nodiscard]] static Checked<FreeMemory> watch(const std::shared_ptr<const DriverApi>& driver,
                                                 int gpus);
  // Bytes, by GPU. Errors: G005.
  [[nodiscard]] Checked<std::vector<std::int64_t>> read() const;

 private:
  FreeMemory() = default;

  std::vector<Device> devices_;
};

}  // namespace harpe::cuda
