#pragma once

#include <cstdint>

#include "ir/blocks.h"
#include "ir/program.h"

namespace harpe {

enum class Coverage : std::uint8_t { Empty, Partial, Full };

// A mask with its names resolved. Visible(q, k) for query position q of `queries`, key k of `keys`.
//   causal(Q, K)   k - q <= |K| - |Q|   (bottom-right aligned)
struct ResolvedMask {
  int query_axis = -1;  // index into Blocks::axes
  int key_axis = -1;
  std::int64_t diagonal = 0;  // key k is visible to query q iff k <= q + diagonal
};

[[nodiscard]] ResolvedMask resolve_mask(const Blocks& blocks, const Mask& mask);

// How much of queries x keys (logical intervals) is visible. An empty interval is Empty.
[[nodiscard]] Coverage classify(const ResolvedMask& mask, Interval queries, Interval keys);

}  // namespace harpe
