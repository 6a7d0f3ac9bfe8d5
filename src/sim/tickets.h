#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace harpe {

// How a GEMM kernel's tiles are cut: the first `whole` are whole, the others are cut in `parts`
// along K.
struct Tiling {
  std::int64_t cluster = 1;  // thread blocks with tiles above each other, which count as one tile
  std::int64_t rows = 0;     // of such a tile
  std::int64_t columns = 0;
  std::int64_t parts = 1;
  std::optional<std::int64_t> whole = {};  // none: all are whole
  friend bool operator==(const Tiling&, const Tiling&) = default;
};

// Reads a variant of a launch plan: "tile 128x256 stages 4 cut 3 behind tile 40". None where thread
// blocks stream K ("tile 16x128 stages 12 streams 128"), and where kernels have no variants.
[[nodiscard]] std::optional<Tiling> read_tiling(std::string_view variant);

// True if thread blocks stream K: all rows are one tile, and B is read once.
[[nodiscard]] bool is_streamed(std::string_view variant);

// Into how many equal shares a kernel of few queries cuts the keys of all pairs, and into how many
// groups the heads that share keys: "keys in 128 shares heads in 4 groups", or one group.
struct KeyShares {
  std::int64_t shares = 1;
  std::int64_t groups = 1;
  friend bool operator==(const KeyShares&, const KeyShares&) = default;
};

// None for other kernels.
[[nodiscard]] std::optional<KeyShares> read_shares(std::string_view variant);

// The tiles and parts of tiles that a kernel's thread blocks take: of B blocks, block b takes the
// tickets b, b + B, b + 2 B and so on, in the order of the panels. A block holds its ticket even if
// the operands have not arrived, so a late panel delays all later tickets that are a multiple of B
// away.
class Tickets {
 public:
  // Requires: the blocks of a launch, at least 1.
  Tickets(const Tiling& tiling, std::int64_t blocks) : tiling_(tiling), blocks_(blocks) {}

  // Adds the next panel: `batch` problems of this size. Requires: positive numbers.
  void add(double batch, double rows, double columns);

  // Elements of both operands that a tile reads per element of its result, along a unit of K.
  [[nodiscard]] double reads() const {
    return 1 / static_cast<double>(tiling_.rows) + 1 / static_cast<double>(tiling_.columns);
  }

  // The slowdown against a kernel in which all rows are one panel and each block of a cluster has
  // tiles of its own. Requires: a panel.
  [[nodiscard]] double apart() const;

  // The bytes that a thread block stores and reads to add up the parts of a cut tile; 0: no tile is
  // cut.
  [[nodiscard]] double cut_bytes() const;

  [[nodiscard]] std::size_t panels() const { return bounds_.size() - 1; }
  // How many whole tiles take as long as the work of one block from the first ticket of panel
  // `first` until panel `last` is done. Requires: first <= last, panels.
  [[nodiscard]] double steps(std::size_t first, std::size_t last) const;

 private:
  void add_tiles(std::int64_t tiles);

  Tiling tiling_;
  std::int64_t blocks_;
  double rows_ = 0;
  double columns_ = 0;
  std::int64_t tiles_ = 0;
  std::vector<std::int64_t> bounds_ = {0};  // tickets before each panel, and all
};

}  // namespace harpe
