#include "exec/cuda/gemm.h"

#include <algorithm>
#include <limits>

#include "exec/cuda/device/gemm_order.h"
#include "exec/cuda/gemm_variants.h"

namespace harpe::cuda {
namespace {

using device::GemmConfig;

constexpr std::int64_t kTileK = GemmConfig::kTileK;
constexpr int kMostParts = 12;

std::int64_t cluster_tiles(const GemmSpec& spec, const GemmConfig& config) {
  const std::int64_t rows = std::int64_t{config.tile_m} * config.cluster;
  const std::int64_t columns = (spec.n + config.tile_n - 1) / config.tile_n;
  std::int64_t tiles = 0;
  for (const GemmPanelSpec& panel : spec.panels) tiles += (panel.rows + rows - 1) / rows * columns;
  return tiles;
}

std::int64_t k_blocks(const GemmPanelSpec& panel) {
  std::int64_t blocks = 0;
  for (const GemmPieceSpec& piece : panel.pieces) blocks += (piece.k_count + kTileK - 1) / kTileK;
  return blocks;
}

// The shortest panel's: what all can be cut into.
std::int64_t least_blocks(const GemmSpec& spec) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const GemmPanelSpec& panel : spec.panels) least = std::min(least, k_blocks(panel));
  return least;
}

// Clocks of a block's stage: the tensor cores take 32 values of C an element of K each, the second
// level of cache gives 48 bytes to each multiprocessor. Both measured (docs/kernels.md).
double stage_clocks(const GemmConfig& config) {
  const double multiply = config.tile_m * config.tile_n / 32.0;
  const double load = (config.a_bytes() + config.b_bytes() / config.cluster) / 48.0;
  return std::max(multiply * 1.04, load);
}

// What is not hidden of storing a tile; with ping_pong the other consumer multiplies meanwhile.
double store_clocks(const GemmConfig& config) {
  return config.ping_pong ? 400.0 : 8.0 * config.tile_n;
}

// Writing one's sums, and for the last of a tile reading everybody's.
double cut_clocks(const GemmConfig& config, int parts) {
  return parts == 1 ? 0.0 : 1500.0 + (1 + parts) * config.tile_m * config.tile_n * 4 / 48.0;
}

struct Tail {
  int parts = 1;
  double clocks = 0;
};

// `rest` tiles that do not fill a wave: cut so that they fill waves of shares.
Tail best_tail(const GemmConfig& config, std::int64_t rest, std::int64_t clusters, double tile,
               std::int64_t blocks) {
  Tail best{.parts = 1, .clocks = rest == 0 ? 0.0 : tile};
  if (!config.cuts) return best;
  for (int parts = 2; parts <= kMostParts && blocks / parts >= 4 && rest > 0; ++parts) {
    const std::int64_t waves = (rest * parts + clusters - 1) / clusters;
    const double clocks = static_cast<double>(waves) * tile / parts + cut_clocks(config, parts);
    if (clocks < best.clocks) best = {.parts = parts, .clocks = clocks};
  }
  return best;
}

struct Estimate {
  GemmChoice choice;
  double clocks = 0;
};

Estimate estimate(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  const std::int64_t clusters = (blocks - spec.copy_blocks) / config.cluster;
  const std::int64_t tiles = cluster_tiles(spec, config);
  const std::int64_t least = least_blocks(spec);
  const double tile = static_cast<double>(least) * stage_clocks(config) + store_clocks(config);
  const std::int64_t rest = tiles % clusters;
  const Tail tail = best_tail(config, rest, clusters, tile, least);
  return {.choice = {.config = config,
                     .full_tiles = static_cast<int>(tail.parts == 1 ? tiles : tiles - rest),
                     .parts = tail.parts,
                     .group = config.cluster == 2 ? 8 : 16},
          .clocks = static_cast<double>(tiles / clusters) * tile + tail.clocks};
}

// Rows of C that the copy engine can write.
bool stores_in_bulk(const GemmSpec& spec) {
  return std::ranges::all_of(spec.panels, [&](const GemmPanelSpec& panel) {
    return panel.c % 16 == 0 && panel.c_stride * device::bytes_of(spec.out) % 16 == 0;
  });
}

}  // namespace

GemmChoice cut_gemm(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  return estimate(spec, config, blocks).choice;
}

GemmChoice choose_gemm(const GemmSpec& spec, int blocks) {
  Estimate best{.choice = {}, .clocks = std::numeric_limits<double>::infinity()};
  for (GemmConfig config : gemm_tiles()) {
    if (spec.copy_blocks > 0 && !config.copies) continue;
    config.in = spec.in;
    config.out = spec.out;
    config.layout = spec.layout;
    config.store = spec.add               ? device::GemmStore::Add
                   : stores_in_bulk(spec) ? device::GemmStore::Bulk
                                          : device::GemmStore::Direct;
    if (!ships(config)) continue;
    const Estimate found = estimate(spec, config, blocks);
    if (found.clocks < best.clocks) best = found;
  }
  return best.choice;
}

std::uint32_t arrivals(const GemmPanelSpec& panel, std::int64_t n, const GemmConfig& config) {
  const std::int64_t rows = (panel.rows + config.tile_m - 1) / config.tile_m;
  const std::int64_t columns = (n + config.tile_n - 1) / config.tile_n;
  return static_cast<std::uint32_t>(rows * columns * config.arrivals_per_tile());
}

}  // namespace harpe::cuda
