#include "exec/cuda/kernels/gemm/few_rows.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "exec/cuda/kernels/gemm/device/few_rows_order.h"

namespace harpe::cuda {
namespace {

using device::GemmConfig;

std::int64_t tiles_of(const GemmSpec& spec, const GemmConfig& config) {
  return (spec.n + config.tile_n - 1) / config.tile_n;
}

std::int64_t tile_blocks(const GemmSpec& spec) {
  return (spec.k + GemmConfig::kTileK - 1) / GemmConfig::kTileK;
}

bool is_in_order(const GemmPanelSpec& panel) {
  return std::ranges::is_sorted(panel.pieces, {}, &GemmPieceSpec::k_begin);
}

// Of the tile that is cut into most.
int parts_of(int tiles, int blocks, int streams) {
  const int all = tiles * blocks;
  int most = 1;
  for (int tile = 0; tile < tiles; ++tile) {
    const int first = device::stream_of(tile * blocks, all, streams);
    const int last = device::stream_of((tile + 1) * blocks - 1, all, streams);
    most = std::max(most, last - first + 1);
  }
  return most;
}

// Looks at memory for `parts` parts of others, as take_all has them.
int looks_at(int parts, int at_once) {
  return parts / at_once + std::popcount(static_cast<unsigned>(parts % at_once));
}

// What the owner waits for at the end, and each look at memory for parts of others; three times
// that where sums of 128 rows fill the registers.
double join_clocks(const GemmConfig& config, int parts) {
  if (parts == 1) return 0.0;
  const double slower = config.tile_m > 64 ? 3.0 : 1.0;
  const int rounds = config.tile_m / 8 / device::quads_at_once(config.tile_m);
  const int looks = rounds * looks_at(parts - 1, device::parts_at_once(config.tile_m));
  return slower *
         (700.0 + 900.0 * looks + (parts - 1) * 4.0 * config.tile_m * config.tile_n / 48.0);
}

// Clocks of an H200, measured (docs/kernels.md). Memory gives more bytes a clock the more blocks
// ask, a tenth less for 64 columns here and there; one block takes 50 of A and B.
double stream_clocks(const GemmSpec& spec, const GemmConfig& config, int streams) {
  const auto tiles = static_cast<int>(tiles_of(spec, config));
  const auto blocks = static_cast<int>(tile_blocks(spec));
  const double scattered = config.tile_n == 64 && tiles > streams ? 0.9 : 1.0;
  const double memory = std::min(2600.0, 1800.0 + 5.8 * streams) * scattered;
  const double longest = (tiles * blocks + streams - 1) / streams;
  const double second_store = config.tile_m > 64 ? 1000.0 : 0.0;  // sums are staged in two goes
  const auto a_bytes = static_cast<double>(rows_in_tile(spec) * GemmConfig::kTileK * 2);
  return std::max(longest * streams * config.b_bytes() / memory,
                  longest * (a_bytes + config.b_bytes()) / 50.0) +
         join_clocks(config, parts_of(tiles, blocks, streams)) + second_store;
}

}  // namespace

std::int64_t rows_in_tile(const GemmSpec& spec) {
  constexpr std::int64_t kAlign = GemmConfig::kRowAlign;
  std::int64_t rows = 0;
  for (const GemmPanelSpec& panel : spec.panels) {
    rows += (panel.rows + kAlign - 1) / kAlign * kAlign;
  }
  return rows;
}

bool suits_few_rows(const GemmSpec& spec, const GemmConfig& config) {
  const std::int64_t rows = rows_in_tile(spec);
  const bool fits = rows <= config.tile_m && (rows > config.tile_m / 2 || config.tile_m == 8);
  return fits && !has_groups(spec) && !spec.add && std::ranges::all_of(spec.panels, is_in_order) &&
         tiles_of(spec, config) * tile_blocks(spec) <= device::kMostStreamedBlocks;
}

int most_streams(const GemmSpec& spec, const GemmConfig& config) {
  constexpr std::int64_t kLeastBlocks = 4;  // of a stream
  const std::int64_t blocks = tiles_of(spec, config) * tile_blocks(spec);
  return static_cast<int>(std::clamp<std::int64_t>(blocks / kLeastBlocks, 1, device::kMostStreams));
}

StreamEstimate estimate_streams(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  const int most = std::min(most_streams(spec, config), blocks);
  StreamEstimate best{.streams = 1, .clocks = std::numeric_limits<double>::infinity()};
  for (int streams = most; streams > most * 2 / 5; --streams) {
    const double clocks = stream_clocks(spec, config, streams);
    if (clocks < best.clocks) best = {.streams = streams, .clocks = clocks};
  }
  return best;
}

}  // namespace harpe::cuda
