#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/profile/leaf_specs.h"

namespace harpe::cuda::profile {

// The measured shapes, all different for a leaf and type. `quick`: a few small ones.

// GEMMs with few rows, as in layers that generate one token at a time, divided over each of these
// numbers of ranks.
[[nodiscard]] std::vector<GemmSize> short_gemms(const std::vector<std::int64_t>& cuts, bool quick);
// GEMMs of the bench's layers for the last of these numbers of ranks, whole and by chunks; cubes;
// and the short ones.
[[nodiscard]] std::vector<LeafCase> gemm_cases(const std::vector<std::int64_t>& cuts, bool quick);
// Attention of the bench's cases on `ranks` ranks: whole heads, parts of the positions, and parts
// of the heads; then one new query for each of some sequences.
[[nodiscard]] std::vector<LeafCase> attention_cases(std::int64_t ranks, bool quick);
// Leaves of the plain kernels: other types, backward, and leaves that are bound by memory.
[[nodiscard]] std::vector<LeafCase> plain_cases(bool quick);

}  // namespace harpe::cuda::profile
