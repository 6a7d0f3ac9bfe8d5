#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// What the GPU kernels for GEMMs of many rows take, in clocks of an SM: by this the kernels are
// chosen, and predictions are made. Fitted to times on H200 (docs/benchmarks/kernel_times.md).
namespace harpe {

// A tile of C, of operands of 16 bits.
struct GemmTile {
  std::int64_t rows = 0;  // of one thread block
  std::int64_t columns = 0;
  std::int64_t cluster = 1;  // thread blocks with tiles above each other, which share B
  bool ping_pong = false;    // two warpgroups alternate: one stores while the other multiplies
  bool by_threads = false;  // threads store it, behind its last stage, and add up what others store
  bool m_major = false;     // A is stored as its transpose
  bool swapped = false;     // it is computed as its transpose
  friend bool operator==(const GemmTile&, const GemmTile&) = default;
};

inline constexpr std::int64_t kGemmStage = 64;  // values along K that a stage holds

// The bytes per clock that the L2 cache delivers to each of `blocks` thread blocks.
[[nodiscard]] double cached_bytes_per_clock(double blocks);
// One stage, if a thread block gets so many bytes per clock.
[[nodiscard]] double stage_clocks(const GemmTile& tile, double bytes_per_clock);
// The part of storing a tile that nothing hides.
[[nodiscard]] double store_clocks(const GemmTile& tile);
// The start of a launch, and the store of the last tile.
[[nodiscard]] double edge_clocks(const GemmTile& tile);
// The parts of tiles cut along K that one thread block multiplies, `rounds` of them: it stores each
// sum for the block that adds up the tile.
[[nodiscard]] double leave_clocks(const GemmTile& tile, std::int64_t rounds);
// Adding up a tile that is cut into `parts`.
[[nodiscard]] double add_up_clocks(const GemmTile& tile, std::int64_t parts);

// How memory fills rings of stages with weights: the clocks until the first ones come, and bytes a
// clock of all rings together.
struct RingFill {
  double latency;
  double bytes_per_clock;
};

// The least clocks of a stage that this allows: the time in which a ring is filled, divided by its
// `stages`, if `rings` are filled with different weights at once, `bytes` for each stage.
[[nodiscard]] double ring_clocks(double stages, double bytes, double rings, const RingFill& fill);

// The clocks of a stage in a kernel for few rows, if one thread block of each of `pairs` has `rows`
// of them: how fast memory fills its ring, or how fast it receives its operands.
[[nodiscard]] double pair_clocks(double rows, double columns, double stages, double pairs);

// The share of its clock that a GPU keeps while it multiplies in such tiles for so many seconds,
// because its power is limited.
[[nodiscard]] double clock_under_load(const GemmTile& tile, double seconds);

// The time from the launch until thread blocks that copy beside tiles have stored so many bytes at
// other ranks.
[[nodiscard]] double copied_clocks(double bytes);

// How a GEMM kernel's tiles are cut: the first `whole` are whole, the others are cut in `parts`
// along K. The tiles of a cluster count as one.
struct Tiling {
  GemmTile tile;
  std::int64_t parts = 1;
  std::optional<std::int64_t> whole = {};  // none: all are whole
  // The ticket from which on thread blocks that copy first take tickets too; none: they never do.
  std::optional<std::int64_t> joined = {};
  friend bool operator==(const Tiling&, const Tiling&) = default;
};

// The tiles and parts of tiles that a kernel's thread blocks take: of B blocks, block b takes the
// tickets b, b + B, b + 2 B and so on, in the order of the panels. A block holds its ticket even if
// the operands have not arrived, so a late panel delays all later tickets that are a multiple of B
// away. From Tiling::joined on, blocks that have copied come first, and count as the others do.
class Tickets {
 public:
  // Requires: the blocks of a launch that do not copy, at least 1, and those that do.
  Tickets(const Tiling& tiling, std::int64_t blocks, std::int64_t copiers = 0)
      : tiling_(tiling), blocks_(blocks), copiers_(tiling.joined ? copiers : 0) {}

  // Adds the next panel: `batch` problems of this size. Requires: positive numbers.
  void add(double batch, double rows, double columns);

  [[nodiscard]] const GemmTile& tile() const { return tiling_.tile; }
  [[nodiscard]] std::size_t panels() const { return bounds_.size() - 1; }
  // How many whole tiles take as long as the work of one block from the first ticket of panel
  // `first` until panel `last` is done. Requires: first <= last, panels.
  [[nodiscard]] double steps(std::size_t first, std::size_t last) const;
  // The same for the blocks that join, from their first ticket on; 0: none do.
  [[nodiscard]] double steps_of_copiers() const;
  // The clocks of the kernel, from its launch to its end, if no operand comes late. Requires: a
  // panel; `stages` of each along K.
  [[nodiscard]] double clocks(std::int64_t stages) const;
  // What cutting tiles adds to that.
  [[nodiscard]] double cut_clocks() const;

 private:
  [[nodiscard]] std::int64_t whole_tiles() const;
  [[nodiscard]] std::int64_t taken(std::int64_t block, std::int64_t begin, std::int64_t end) const;
  [[nodiscard]] double most_steps(std::int64_t first_block, std::int64_t begin,
                                  std::int64_t end) const;

  Tiling tiling_;
  std::int64_t blocks_;
  std::int64_t copiers_;
  std::int64_t tiles_ = 0;
  std::vector<std::int64_t> bounds_ = {0};  // tickets before each panel, and all
};

}  // namespace harpe
