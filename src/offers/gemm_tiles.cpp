#include "offers/gemm_tiles.h"

#include <algorithm>
#include <cmath>

namespace harpe {
namespace {

constexpr double kBytesOfRow = kGemmStage * 2;

// The factor by which a tile exceeds the tensor cores' time. Tiles of 64 or 96 rows load many bytes
// for the work they do.
double loss_of(const GemmTile& tile) {
  if (tile.rows == 64) return 1.14;
  if (tile.rows == 96) return tile.columns == 128 ? 1.11 : 1.06;
  if (tile.rows == 112) return tile.columns == 128 ? 1.1 : 1.05;
  if (tile.rows == 176 || (tile.rows == 144 && tile.ping_pong)) return 1.07;
  if ((tile.rows == 192 || tile.rows == 208) && tile.columns == 128) return 1.03;
  if (tile.columns == 320) return 1.01;
  if (tile.columns == 256 && tile.cluster == 1 && tile.rows < 192) return 1.017;
  if (tile.columns == 256) return 1.01;
  if (tile.columns == 224) return 1.045;
  if (tile.columns == 192) return 1.017;
  return tile.ping_pong ? 1.013 : 1.023;
}

// How long a tile's loads take beside what the L2 cache's bandwidth says, as measured. Why tiles
// differ is not known.
double load_factor_of(const GemmTile& tile) {
  if (tile.columns <= 64) return tile.rows == 160 ? 0.85 : 0.79;
  if (tile.rows < 128 && tile.columns == 128 && tile.cluster == 1) return 1.1;
  return tile.rows == 96 && tile.columns == 256 ? 1.15 : 1;
}

// The rows of A and B that a thread block loads for a stage.
double loaded_rows(const GemmTile& tile) {
  return static_cast<double>(tile.rows) +
         static_cast<double>(tile.columns) / static_cast<double>(tile.cluster);
}

double values_of(const GemmTile& tile) { return static_cast<double>(tile.rows * tile.columns); }

}  // namespace

double cached_bytes_per_clock(double blocks) {
  constexpr double kOfAll = 7370;
  constexpr double kOfOne = 68;
  return std::min(kOfOne, kOfAll / blocks);
}

double stage_clocks(const GemmTile& tile, double bytes_per_clock) {
  constexpr double kValues = 32;  // of C whose stage the tensor cores of an SM multiply in a clock
  const double multiplied = values_of(tile) / kValues * loss_of(tile);
  const double loaded = loaded_rows(tile) * kBytesOfRow / bytes_per_clock;
  const double least = tile.columns > 64 ? 0 : (tile.rows < 128 ? 300 : 330);
  return std::max({multiplied, load_factor_of(tile) * loaded, least});
}

double store_clocks(const GemmTile& tile) {
  if (tile.by_threads) return 0;  // they are counted where what they store is added
  return tile.ping_pong ? 800 : 0.069 * values_of(tile);
}

double edge_clocks(const GemmTile& tile) {
  const double last = (tile.ping_pong ? 0.15 : 0.033) * values_of(tile);
  return 3600 + (tile.cluster == 1 ? 0 : 1000) + last;
}

double leave_clocks(const GemmTile& tile, std::int64_t rounds) {
  constexpr double kFirst = 9000;
  // With ping-pong one warpgroup leaves its sum while the other multiplies; else the sum of the
  // round before is still on its way. 9000 would fit GEMMs alone as well, but `ag_gemm`
  // 288x10240x8192 and 304x10240x8192 would take cut tiles in two rounds, which were not timed.
  const double further = tile.ping_pong ? 13000 : 20000;
  return rounds == 0 ? 0 : kFirst + further * static_cast<double>(rounds - 1);
}

double add_up_clocks(const GemmTile& tile, std::int64_t parts) {
  constexpr double kFloat = 4;
  constexpr double kBytesPerClock = 61;
  constexpr double kShared = 0.6;  // parts add up together: fitted to 17 GEMMs alone on one H200
  constexpr double kWide = 7000;   // why wide tiles take longer is not known
  return (1 + kShared * static_cast<double>(parts)) * values_of(tile) * kFloat / kBytesPerClock +
         (tile.columns >= 256 ? kWide : 0);
}

double ring_clocks(double stages, double bytes, double rings, const RingFill& fill) {
  return fill.latency / stages + rings * bytes / fill.bytes_per_clock;
}

// A block of a pair loads half of the weights. The half from the other block takes it 0.7 of the
// time of the half that it loads itself.
double pair_clocks(double rows, double columns, double stages, double pairs) {
  constexpr RingFill kFill{.latency = 1600, .bytes_per_clock = 3600};
  constexpr double kOfWeights = 0.85;
  constexpr double kReceived = 50;  // bytes a clock
  const double weights = columns * kBytesOfRow;
  return std::max(ring_clocks(stages, weights, pairs, kFill),
                  (rows * kBytesOfRow + kOfWeights * weights) / kReceived);
}

// It falls with the logarithm of the time: fitted to GEMMs alone on one H200. In long kernels it
// falls the further the more a tile loads for each of its values: fitted to 14 operators of one to
// six milliseconds on two H200, each tile by itself for 150 ms. In shorter ones, between kernels of
// another kind, such tiles were not faster.
double clock_under_load(const GemmTile& tile, double seconds) {
  constexpr double kFrom = 300e-6;
  constexpr double kUntil = 1e-3;
  constexpr double kKept = 0.91;  // also by tiles of kOfPairs rows, as 128x128 in pairs
  constexpr double kOfPairs = 0.0117;
  constexpr double kLong = 650e-6;
  constexpr double kLonger = 800e-6;
  constexpr double kOfRows = 12;
  if (seconds <= kFrom) return 1;
  const double way = std::min(1.0, std::log(seconds / kFrom) / std::log(kUntil / kFrom));
  const double again = tile.m_major ? static_cast<double>(tile.rows) : 0;
  const double rows = (loaded_rows(tile) + again) / values_of(tile);
  const double gained = std::clamp(kOfRows * (kOfPairs - rows), -0.05, 0.03);
  const double length = std::clamp((seconds - kLong) / (kLonger - kLong), 0.0, 1.0);
  return 1 - (1 - kKept) * way + gained * length;
}

double copied_clocks(double bytes) {
  constexpr double kStart = 15000;
  constexpr double kBytesPerClock = 200;  // 300 GB/s at 1.5 GHz
  return kStart + bytes / kBytesPerClock;
}

void Tickets::add(double batch, double rows, double columns) {
  const double tiles =
      std::ceil(rows / static_cast<double>(tiling_.tile.rows * tiling_.tile.cluster)) *
      std::ceil(columns / static_cast<double>(tiling_.tile.columns));
  tiles_ += static_cast<std::int64_t>(batch * tiles);
  const std::int64_t whole = whole_tiles();
  bounds_.push_back(whole + (tiles_ - whole) * tiling_.parts);
}

std::int64_t Tickets::whole_tiles() const {
  return std::min(tiles_, tiling_.whole.value_or(tiles_));
}

double Tickets::clocks(std::int64_t stages) const {
  const GemmTile& tile = tiling_.tile;
  const auto active = static_cast<double>(std::min(blocks_ + copiers_, tiles_) * tile.cluster);
  const double each =
      static_cast<double>(stages) * stage_clocks(tile, cached_bytes_per_clock(active)) +
      store_clocks(tile);
  // What was measured of cut tiles with ping-pong, and of swapped ones; why these take longer is
  // not known. Choices count on neither.
  constexpr double kHidden = 6000;
  constexpr double kSwapped = 5000;
  const double cut = cut_clocks();
  const double hidden = tile.ping_pong ? std::min(kHidden, cut) : 0;
  const double longer = tile.swapped && cut > 0 ? kSwapped : 0;
  return steps(0, panels() - 1) * each + edge_clocks(tile) + cut - hidden + longer;
}

double Tickets::cut_clocks() const {
  if (tiles_ == whole_tiles() || tiling_.parts == 1) return 0;
  const double rounds =
      most_steps(0, whole_tiles(), bounds_.back()) * static_cast<double>(tiling_.parts);
  return leave_clocks(tiling_.tile, static_cast<std::int64_t>(rounds)) +
         add_up_clocks(tiling_.tile, tiling_.parts);
}

// The tickets of a block among [begin, end). Blocks from blocks_ on copy first.
std::int64_t Tickets::taken(std::int64_t block, std::int64_t begin, std::int64_t end) const {
  const auto below = [](std::int64_t ticket, std::int64_t first, std::int64_t stride) {
    return (std::max<std::int64_t>(0, ticket - first) + stride - 1) / stride;
  };
  const std::int64_t joined = tiling_.joined.value_or(end);
  std::int64_t count = 0;
  if (block < blocks_ && begin < joined) {
    count = below(std::min(end, joined), block, blocks_) - below(begin, block, blocks_);
  }
  if (end <= joined) return count;
  const std::int64_t all = blocks_ + copiers_;
  const std::int64_t first = joined + (block + copiers_) % all;
  return count + below(end, first, all) - below(std::max(begin, joined), first, all);
}

double Tickets::most_steps(std::int64_t first_block, std::int64_t begin, std::int64_t end) const {
  const std::int64_t cut = std::clamp(whole_tiles(), begin, end);
  double most = 0;
  for (std::int64_t block = first_block; block < blocks_ + copiers_; ++block) {
    const auto parts = static_cast<double>(taken(block, cut, end));
    most = std::max(most, static_cast<double>(taken(block, begin, cut)) +
                              parts / static_cast<double>(tiling_.parts));
  }
  return most;
}

double Tickets::steps(std::size_t first, std::size_t last) const {
  return most_steps(0, bounds_[first], bounds_[last + 1]);
}

double Tickets::steps_of_copiers() const { return most_steps(blocks_, 0, bounds_.back()); }

}  // namespace harpe
