#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace harpe {

// How the tiles of a GEMM's kernel are cut: `whole` tiles, and behind them each in `parts` along K.
struct Tiling {
  std::int64_t cluster = 1;  // thread blocks whose tiles lie one above the other: together one tile
  std::int64_t rows = 0;     // of that
  std::int64_t columns = 0;
  std::int64_t parts = 1;
  std::optional<std::int64_t> whole = {};  // none: all
  friend bool operator==(const Tiling&, const Tiling&) = default;
};

// Of a variant as launch plans name it: "tile 128x256 stages 4 cut 3 behind tile 40". None where
// thread blocks stream K ("tile 16x128 stages 12 streams 128"), and where kernels have no variants.
[[nodiscard]] std::optional<Tiling> read_tiling(std::string_view variant);

// Whether thread blocks stream K: all rows are one tile, and B is read once.
[[nodiscard]] bool is_streamed(std::string_view variant);

// The tiles and parts of tiles that a kernel's thread blocks take: block b of B the tickets b,
// b + B, b + 2 B and so on, in the order of the panels. It holds one whether that has arrived or
// not, so a panel that comes late delays all tickets behind it that are a multiple of B away.
class Tickets {
 public:
  // Requires: blocks of a launch, at least 1.
  Tickets(const Tiling& tiling, std::int64_t blocks) : tiling_(tiling), blocks_(blocks) {}

  // The next panel: so many problems of such a size. Requires: positive.
  void add(double batch, double rows, double columns);

  // Elements of both operands that a tile reads for each of its own, along a unit of K.
  [[nodiscard]] double reads() const {
    return 1 / static_cast<double>(tiling_.rows) + 1 / static_cast<double>(tiling_.columns);
  }

  // How many times as long they take as if all rows were one panel, and blocks of a cluster were
  // tiles by themselves. Requires: a panel.
  [[nodiscard]] double apart() const;

  [[nodiscard]] std::size_t panels() const { return bounds_.size() - 1; }
  // How many whole tiles take as long as what one block takes one after the other from the first
  // ticket of panel `first` on, until panel `last` is made. Requires: first <= last, panels.
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
