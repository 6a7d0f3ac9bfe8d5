#pragma once

#include <span>
#include <vector>

#include "exec/cuda/actions/launch_spec.h"
#include "exec/cuda/actions/place_map.h"

namespace harpe::cuda {

// Makes the launch read what `moves` (against their way) have copied where it was copied from, and
// wait for none of it: all of it or, where kernels cannot read some there, nothing. For each
// arrival of the launch, pieces of A or chunks of keys in order, whether it is read in place now.
[[nodiscard]] std::vector<bool> read_in_place(LaunchSpec& launch, std::span<const PlaceMap> moves);

}  // namespace harpe::cuda
