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

// A launch's ramp, beside that of the other kernel (gemm.cpp).
constexpr double kStartClocks = 4350;

// Staging a tile's sums and adding them up in the blocks of the stream.
double join_clocks(const GemmConfig& config, int stream_blocks) {
  const int rounds = config.tile_m / config.staged_rows();
  const double of_block = 50.0 + 8.0 * config.staged_rows();
  const double shared = stream_blocks > 1 ? 300.0 + of_block * stream_blocks : 0.0;
  return rounds * (73.0 * config.staged_rows() + shared);
}

// What the owner of a tile waits for besides: each look at memory for parts of other streams.
double owner_clocks(const GemmConfig& config, int parts, int stream_blocks) {
  if (parts == 1) return 0.0;
  const int passes = std::max(1, device::join_passes(config.tile_m) / stream_blocks);
  const int rounds = config.tile_m / config.staged_rows();
  const int looks = looks_at(parts - 1, device::parts_at_once(config.tile_m));
  const double bytes = (parts - 1) * 4.0 * config.tile_m * config.tile_n / stream_blocks;
  return rounds * (110.0 + 900.0 * looks * passes) + bytes / 21.0;
}

// One warpgroup multiplies a tile of 64 columns, and where its share of K is short, weights that
// were read ahead wait for it.
double narrow_clocks(const GemmConfig& config, int tiles, double blocks) {
  const bool is_narrow = config.tile_n == 64 && config.tile_m <= 32 && tiles > 1;
  return is_narrow && blocks <= 40 ? 760.0 : 0.0;
}

// Of a stage, for loads of the panels' rows: three warps share them out, each begins one in 160
// clocks, and the copy engine one in 70.
double panels_clocks(int panels) {
  return std::max(160.0 * device::ceil_div(panels, device::kRowWarps), 70.0 * panels);
}

// Clocks of an H200, fitted to measurements (docs/kernels.md). The second-level cache gives one
// block 79 bytes a clock of A and B. Joins of all tiles but the last hold up a part of the stream.
double stream_clocks(const GemmSpec& spec, const GemmConfig& config, int streams,
                     int stream_blocks) {
  const auto tiles = static_cast<int>(tiles_of(spec, config));
  const auto blocks = static_cast<int>(tile_blocks(spec));
  const int all = streams * stream_blocks;
  const int share = device::ceil_div(tiles * blocks, streams);
  const double longest = device::ceil_div(share, stream_blocks);
  const auto a_bytes = static_cast<double>(rows_in_tile(spec) * GemmConfig::kTileK * 2);
  const double joined = static_cast<double>(share) / blocks + (share % blocks == 0 ? 0 : 1);
  return kStartClocks + narrow_clocks(config, tiles, longest) +
         std::max({longest * all * config.b_bytes() / streamed_from_memory(all),
                   longest * all * (a_bytes + config.b_bytes()) / kStreamedThroughCache,
                   longest * (a_bytes + config.b_bytes()) / 79.0,
                   longest * panels_clocks(row_panels(spec))}) +
         join_clocks(config, stream_blocks) * (1 + 0.5 * std::max(0.0, joined - 1)) +
         owner_clocks(config, parts_of(tiles, blocks, streams), stream_blocks);
}

// Of so many blocks those that clusters fill: they lie within a group of 16 or 18 multiprocessors
// of the GPU, which clusters of two fill alone.
int clusters_of(int blocks, int stream_blocks) {
  constexpr int kUnfilled = 2;  // of 16
  if (stream_blocks <= 2) return blocks / stream_blocks;
  return blocks * (16 - kUnfilled) / 16 / stream_blocks;
}

}  // namespace

double streamed_from_memory(double blocks) { return std::min(2400.0, 1410.0 + 7.4 * blocks); }

std::int64_t rows_in_tile(const GemmSpec& spec) {
  constexpr std::int64_t kAlign = GemmConfig::kRowAlign;
  std::int64_t rows = 0;
  for (const GemmPanelSpec& panel : spec.panels) {
    if (panel.rows_of < 0) rows += (panel.rows + kAlign - 1) / kAlign * kAlign;
  }
  return rows;
}

bool suits_few_rows(const GemmSpec& spec, const GemmConfig& config) {
  const std::int64_t rows = rows_in_tile(spec);
  const bool fits = rows <= config.tile_m && (rows > config.tile_m / 2 || config.tile_m == 8);
  return fits && !has_groups(spec) && !spec.add && spec.panels.size() <= device::kMostRowPanels &&
         std::ranges::all_of(spec.panels, is_in_order) &&
         tiles_of(spec, config) * tile_blocks(spec) <= device::kMostStreamedBlocks;
}

bool can_share_streams(const GemmSpec& spec, int stream_blocks) {
  return stream_blocks > 0 && stream_blocks <= device::kMostStreamBlocks &&
         std::has_single_bit(static_cast<unsigned>(stream_blocks)) &&
         spec.copy_blocks % stream_blocks == 0;
}

int most_streams(const GemmSpec& spec, const GemmConfig& config, int stream_blocks) {
  constexpr std::int64_t kLeastBlocks = 4;  // of K, of a block
  const std::int64_t blocks = tiles_of(spec, config) * tile_blocks(spec);
  return static_cast<int>(std::clamp<std::int64_t>(blocks / (kLeastBlocks * stream_blocks), 1,
                                                   device::kMostStreams / stream_blocks));
}

StreamEstimate estimate_streams(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  StreamEstimate best{.clocks = std::numeric_limits<double>::infinity()};
  for (int shares = 1; shares <= device::kMostStreamBlocks; shares *= 2) {
    const int at_once = clusters_of(blocks, shares);
    if (!can_share_streams(spec, shares) || at_once == 0) continue;
    const int most = std::min(most_streams(spec, config, shares), at_once);
    for (int streams = most; streams > most * 2 / 5; --streams) {
      const double clocks = stream_clocks(spec, config, streams, shares);
      if (clocks >= best.clocks) continue;
      best = {.streams = streams, .stream_blocks = shares, .clocks = clocks};
    }
  }
  return best;
}

}  // namespace harpe::cuda
