#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "offers/gemm_tiles.h"

namespace harpe {

// Reads a variant of a launch plan: "tile 128x256 stages 4 cut 3 behind tile 264 joined at ticket
// 120". None where thread blocks stream K ("tile 16x128 stages 12 streams 128"), and where kernels
// have no variants.
[[nodiscard]] std::optional<Tiling> read_tiling(std::string_view variant);

// How many thread blocks stream K, for which all rows are one tile, and B is read once: "tile
// 128x128 stages 5 cluster 2 streams 20 by 2" has 80. None where none do.
[[nodiscard]] std::optional<std::int64_t> read_stream_blocks(std::string_view variant);

// Whether threads store results and load addends: where thread blocks stream K, and in variants "…
// by threads".
[[nodiscard]] bool moves_by_threads(std::string_view variant);

// Into how many equal shares a kernel of few queries cuts the keys of all pairs, and into how many
// groups the heads that share keys: "keys in 128 shares heads in 4 groups", or one group.
struct KeyShares {
  std::int64_t shares = 1;
  std::int64_t groups = 1;
  friend bool operator==(const KeyShares&, const KeyShares&) = default;
};

// None for other kernels.
[[nodiscard]] std::optional<KeyShares> read_shares(std::string_view variant);

}  // namespace harpe
