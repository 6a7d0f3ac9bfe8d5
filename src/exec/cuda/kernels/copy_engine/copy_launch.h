#pragma once

#include <cstdint>
#include <memory>

#include "exec/cuda/kernels/launch_spec.h"

namespace harpe::cuda {

// A copy by the copy engine: `rows` rows of `bytes` bytes; pitches are in bytes.
struct CopyLaunch {
  DeviceAddress to = 0;
  DeviceAddress from = 0;
  std::int64_t bytes = 0;
  std::int64_t rows = 1;
  std::int64_t to_pitch = 0;
  std::int64_t from_pitch = 0;
};

[[nodiscard]] std::unique_ptr<KernelLaunch> make_launch(CopyLaunch copy);

}  // namespace harpe::cuda
