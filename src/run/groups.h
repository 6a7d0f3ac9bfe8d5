#pragma once

#include <memory>
#include <optional>

#include "exec/group/group.h"
#include "run/cuda_places.h"

namespace harpe {

// The processor of a rank.
struct RankSite {
  std::optional<int> gpu;  // none: this host's CPU
  CudaPlaces places = {};
};

// The only place that knows every kind of group. Collective. Errors: those of join_cpu_group, and
// of a back end for GPUs; G001 a build without CUDA.
[[nodiscard]] Checked<std::unique_ptr<RankGroup>> join_group(const GroupRequest& request,
                                                             const RankSite& site);

}  // namespace harpe
