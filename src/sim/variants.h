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

// Thread blocks that stream K, for which all rows are one tile, and B is read once: "tile 128x128
// stages 5 cluster 2 streams 20 by 2".
struct Streams {
  std::int64_t rows = 0;  // of a thread block
  std::int64_t columns = 0;
  std::int64_t stages = 1;
  std::int64_t cluster = 1;  // 2: pairs of thread blocks divide the rows
  std::int64_t count = 1;
  std::int64_t each = 1;  // thread blocks, or pairs of them, of a stream
  [[nodiscard]] std::int64_t pairs() const { return count * each; }
  [[nodiscard]] std::int64_t blocks() const { return pairs() * cluster; }
  friend bool operator==(const Streams&, const Streams&) = default;
};

// None for other kernels.
[[nodiscard]] std::optional<Streams> read_streams(std::string_view variant);

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
