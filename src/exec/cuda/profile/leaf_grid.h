#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/profile/leaf_specs.h"

namespace harpe::cuda::profile {

// The shapes that are measured; no two of a leaf and type are alike. `quick`: a few small ones.

// Those of few rows, as layers have them that make one token at a time, cut over each of these
// numbers of ranks.
[[nodiscard]] std::vector<ProductShape> short_products(const std::vector<std::int64_t>& cuts,
                                                       bool quick);
// Products of the bench's layers on the last of so many ranks, whole and by chunks, cubes, and the
// short ones.
[[nodiscard]] std::vector<LeafCase> product_cases(const std::vector<std::int64_t>& cuts,
                                                  bool quick);
// Attention of the bench's cases on so many ranks: whole heads, parts of the positions, and parts
// of the heads; then one new query for each of some sequences.
[[nodiscard]] std::vector<LeafCase> attention_cases(std::int64_t ranks, bool quick);
// What the plain kernels run: other types, gradients, and leaves that only touch memory.
[[nodiscard]] std::vector<LeafCase> plain_cases(bool quick);

}  // namespace harpe::cuda::profile
