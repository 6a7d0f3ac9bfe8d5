#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/cuda/profile/figures.h"
#include "machine/machine.h"
#include "run/gpus.h"

namespace harpe {

struct GpuProfile {
  Machine machine;
  cuda::profile::GpuFigures figures;  // includes figures that the machine cannot hold
};

// Measures the GPUs of this computer with the kernels and copies of the CUDA executor. Takes one to
// two minutes. docs/machine.md says what is measured and what is fitted. Errors: G001; G002 to
// G007; G070, G071, G073, N017.
[[nodiscard]] Checked<GpuProfile> profile_gpus(const GpuProfileRequest& request);

[[nodiscard]] CollectiveKind kind_of(cuda::profile::Pattern pattern);
// The machine that the figures describe; pure. With one GPU the links are assumed.
[[nodiscard]] Machine machine_of(const cuda::profile::GpuFigures& figures, const std::string& day);

}  // namespace harpe
