#pragma once

#include <memory>
#include <optional>

#include "exec/group/group.h"
#include "run/cuda_places.h"

namespace harpe {

// What a rank of a program runs on.
struct RankSite {
  std::optional<int> gpu;  // none: this host's processor
  CudaPlaces places = {};
};

// The one place that knows every kind of group. Collective. Errors: join_cpu_group's; those of a
// back end for GPUs; G001 a build without CUDA.
[[nodiscard]] Checked<std::unique_ptr<RankGroup>> join_group(const GroupRequest& request,
                                                             const RankSite& site);

}  // namespace harpe
