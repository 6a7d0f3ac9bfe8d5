#pragma once

#include <vector>

#include "exec/cuda/profile/leaf_specs.h"

namespace harpe::cuda::profile {

// The shapes that are measured; no two of a leaf and type are alike. `quick`: a few small ones.

// Those of few rows, as layers have them that make one token at a time.
[[nodiscard]] std::vector<ProductShape> short_products(std::int64_t ranks, bool quick);
// Products of the bench's layers on so many ranks, whole and by chunks, cubes, and the short ones.
[[nodiscard]] std::vector<LeafCase> product_cases(std::int64_t ranks, bool quick);
// Attention of the bench's cases on so many ranks: whole heads, parts of the positions, and parts
// of the heads; then one new query for each of some sequences.
[[nodiscard]] std::vector<LeafCase> attention_cases(std::int64_t ranks, bool quick);
// What the plain kernels run: other types, gradients, and leaves that only touch memory.
[[nodiscard]] std::vector<LeafCase> plain_cases(bool quick);

}  // namespace harpe::cuda::profile
