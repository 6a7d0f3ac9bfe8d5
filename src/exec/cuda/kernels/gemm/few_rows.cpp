#include "exec/cuda/kernels/gemm/few_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "exec/cuda/device/shares.h"
#include "exec/cuda/kernels/gemm/device/few_rows_order.h"

namespace harpe::cuda {
namespace {

using device::GemmConfig;

constexpr double kMostFromMemory = 2400;  // bytes a clock

std::int64_t tiles_of(const GemmSpec& spec, const GemmConfig& config) {
  return (spec.n + config.tile_n - 1) / config.tile_n;
}

std::int64_t tile_blocks(const GemmSpec& spec) {
  return (spec.k + GemmConfig::kTileK - 1) / GemmConfig::kTileK;
}

// Whether K chunks are in the order of K, in which B is streamed, and have no B of their own.
bool is_in_order(const GemmPanelSpec& panel) {
  return std::ranges::is_sorted(panel.k_chunks, {}, &GemmKChunkSpec::k_begin) &&
         std::ranges::all_of(panel.k_chunks,
                             [](const GemmKChunkSpec& k_chunk) { return k_chunk.b == 0; });
}

// The parts of the tile that is cut into most.
int parts_of(int tiles, int blocks, int streams) {
  const int all = tiles * blocks;
  int most = 1;
  for (int tile = 0; tile < tiles; ++tile) {
    const int first = device::share_of(tile * blocks, all, streams);
    const int last = device::share_of((tile + 1) * blocks - 1, all, streams);
    most = std::max(most, last - first + 1);
  }
  return most;
}

// The polls with which take_all loads `parts` parts of other streams.
int looks_at(int parts, int at_once) {
  return parts / at_once + std::popcount(static_cast<unsigned>(parts % at_once));
}

// The strips of eight rows that the blocks of a stream with the same rows join.
struct Strips {
  int all;
  int each;  // the most that one block joins
};

Strips strips_of(const GemmSpec& spec, const GemmConfig& config, int stream_blocks) {
  const int all = static_cast<int>(rows_each(spec, config)) / GemmConfig::kRowAlign;
  return {.all = all, .each = device::ceil_div(all, stream_blocks)};
}

// Clocks to send a tile's strips to the blocks of the stream, add them up and store rows of C. With
// the most strips, the two consumers slow each other down.
double join_clocks(const GemmConfig& config, const Strips& strips, int stream_blocks) {
  const int staged = config.staged_rows() / GemmConfig::kRowAlign;
  const double stored = 172.0 * device::ceil_div(strips.each, staged) + 40.0 * strips.each;
  if (stream_blocks == 1) return stored;
  const bool is_crowded = config.tile_m >= 96 && config.consumers() == 2;
  return stored + 218.0 + 177.0 * strips.all + 119.0 * stream_blocks * strips.each +
         (is_crowded ? 50.0 * strips.all * (stream_blocks - 1) : 0.0);
}

// Further clocks of a tile's owner: each poll for parts of other streams. If all tiles are cut
// alike (`is_even`), all streams of a tile end together, and large parts arrive late.
double owner_clocks(const GemmConfig& config, const Strips& strips, int parts, bool is_even) {
  if (parts == 1) return 0.0;
  const int looks = looks_at(parts - 1, device::parts_at_once(config.tile_m));
  const double part = 4.0 * strips.each * GemmConfig::kRowAlign * config.tile_n;  // bytes
  const bool is_late = is_even && config.cluster > 1 && strips.each == strips.all;
  const double late = is_late ? part / 8.0 : 0.0;
  return 196.0 + 529.0 * looks + (parts - 1) * part / 9.4 + late;
}

// One warpgroup alone computes a tile of 64 columns. If its share of K is short, weights that were
// loaded ahead wait for it.
double narrow_clocks(const GemmConfig& config, int tiles, double blocks) {
  const bool is_narrow = config.tile_n == 64 && config.tile_m <= 32 && tiles > 1;
  return is_narrow && blocks <= 40 ? 2081.0 : 0.0;
}

// Clocks per stage to load the panels' rows. Three warps divide the panels; each warp issues a load
// every 160 clocks, and TMA starts one every 70.
double panels_clocks(int panels) {
  return std::max(160.0 * device::ceil_div(panels, device::kRowWarps), 70.0 * panels);
}

// Clocks in which memory brings a stage's weights to `blocks` blocks or pairs. Rows slow it down,
// half as much where several blocks share a stream. Fitted to 22 shapes of 8 to 256 rows
// (kernel_times.md). Where the kernel adds up what all ranks have stored, choices were fitted
// without that (hop_clocks).
double weights_clocks(const GemmSpec& spec, const GemmConfig& config, int blocks, bool is_shared) {
  constexpr double kFreeRows = 32;
  constexpr double kLostByRow = 2.5;     // of the bytes a clock
  constexpr double kRowsByClock = 40e3;  // bytes of A
  const double share = adds_up_all(spec) ? 0.0 : (is_shared ? 0.5 : 1.0);
  const auto rows = static_cast<double>(rows_each(spec, config));
  const double most = kMostFromMemory - share * kLostByRow * std::max(0.0, rows - kFreeRows);
  const double rate = std::min(most, streamed_from_memory(blocks * config.cluster));
  const double of_rows = rows * config.cluster * GemmConfig::kTileK * 2 / kRowsByClock;
  return blocks * (config.b_bytes() / rate + share * of_rows);
}

// Clocks in which the thread blocks receive a stage, 50 bytes of A and B a clock. How fast memory
// fills rings limits pairs alone: the rings of single blocks have more stages.
double received_clocks(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  const auto rows = static_cast<double>(rows_each(spec, config));
  if (config.cluster > 1) {
    // Beside tiles, where the rank computes alone; elsewhere `choose_gemm` counts what pairs take
    // longer (delay_clocks). Fitted to 21 GEMMs of 160 to 256 rows.
    constexpr double kSlower = 1.15;
    const bool is_alone = std::ranges::none_of(spec.panels, [](const GemmPanelSpec& panel) {
      return awaits_rows(panel) || is_awaited(panel);
    });
    return (is_alone ? kSlower : 1) * pair_clocks(rows, config.tile_n, config.stages, blocks);
  }
  return (rows * GemmConfig::kTileK * 2 + config.b_bytes()) / 50.0;
}

// Clocks of an H200, fitted to measurements (kernel_times.md). Up to one ring of weights is loaded
// while the preceding kernel ends. The joins of all tiles but the last delay a part of the stream.
double stream_clocks(const GemmSpec& spec, const GemmConfig& config, int streams,
                     int stream_blocks) {
  constexpr double kStart = 3100;
  const auto tiles = static_cast<int>(tiles_of(spec, config));
  const auto blocks = static_cast<int>(tile_blocks(spec));
  const int all = streams * stream_blocks;  // blocks or pairs; each reads different weights
  const int share = device::ceil_div(tiles * blocks, streams);
  const double longest = device::ceil_div(share, stream_blocks);
  const auto a_bytes = static_cast<double>(rows_each(spec, config) * GemmConfig::kTileK * 2);
  const double ahead =
      std::min<double>(config.stages, longest) * all * config.b_bytes() / kMostFromMemory;
  const double joined = static_cast<double>(share) / blocks + (share % blocks == 0 ? 0 : 1);
  const Strips strips = strips_of(spec, config, stream_blocks);
  const bool is_even = streams % tiles == 0 && tiles * blocks % streams == 0;
  return kStart - 0.23 * ahead + narrow_clocks(config, tiles, longest) +
         std::max(
             {longest * received_clocks(spec, config, all),
              longest * weights_clocks(spec, config, all, stream_blocks > 1),
              longest * all * (config.cluster * a_bytes + config.b_bytes()) / kStreamedThroughCache,
              longest * panels_clocks(row_panels(spec))}) +
         join_clocks(config, strips, stream_blocks) * (1 + 0.53 * std::max(0.0, joined - 1)) +
         owner_clocks(config, strips, parts_of(tiles, blocks, streams), is_even);
}

// Whether B can be loaded from the start, without waiting for a flag.
bool has_early_b(const GemmSpec& spec) {
  return spec.b_is_fixed || std::ranges::none_of(spec.panels, awaits_rows);
}

}  // namespace

int clusters_of(int blocks, int stream_blocks) {
  constexpr std::array<int, device::kMostStreamBlocks> kOf132 = {132, 66, 36, 28, 21, 17, 14, 14};
  return blocks * kOf132.at(static_cast<std::size_t>(stream_blocks - 1)) / 132;
}

double streamed_from_memory(double blocks) {
  return std::min(kMostFromMemory, 1410.0 + 7.4 * blocks);
}

std::int64_t rows_in_tile(const GemmSpec& spec) {
  constexpr std::int64_t kAlign = GemmConfig::kRowAlign;
  std::int64_t rows = 0;
  for (const GemmPanelSpec& panel : spec.panels) {
    if (panel.rows_of < 0) rows += (panel.rows + kAlign - 1) / kAlign * kAlign;
  }
  return rows;
}

std::int64_t rows_each(const GemmSpec& spec, const GemmConfig& config) {
  const std::int64_t strips = rows_in_tile(spec) / GemmConfig::kRowAlign;
  return (strips + config.cluster - 1) / config.cluster * GemmConfig::kRowAlign;
}

int cluster_of(const GemmChoice& choice) { return choice.stream_blocks * choice.config.cluster; }

bool suits_few_rows(const GemmSpec& spec, const GemmConfig& config) {
  const std::int64_t rows = rows_in_tile(spec);
  constexpr std::int64_t kMostOfOneBlock = 128;  // up to here no pair of blocks was faster
  const std::int64_t most = std::int64_t{config.tile_m} * config.cluster;
  const bool fits = rows <= most && (rows > most / 2 || config.tile_m == 8) &&
                    (config.cluster == 1 || rows > kMostOfOneBlock);
  return fits && has_early_b(spec) && !has_groups(spec) && !spec.add &&
         spec.panels.size() <= device::kMostRowPanels &&
         std::ranges::all_of(spec.panels, is_in_order) &&
         tiles_of(spec, config) * tile_blocks(spec) <= device::kMostStreamedBlocks;
}

bool can_share_streams(const GemmSpec& spec, const GemmConfig& config, int stream_blocks) {
  const int cluster = stream_blocks * config.cluster;
  if (stream_blocks < 1 || cluster > device::kMostStreamBlocks) return false;
  const int strips = config.tile_m / GemmConfig::kRowAlign;
  const int sent = (stream_blocks - 1) * device::ceil_div(strips, stream_blocks);
  return sent <= config.inbox_strips() && spec.copy_blocks % cluster == 0;
}

int most_streams(const GemmSpec& spec, const GemmConfig& config, int stream_blocks) {
  constexpr std::int64_t kLeastBlocks = 4;  // K blocks per thread block
  const std::int64_t blocks = tiles_of(spec, config) * tile_blocks(spec);
  return static_cast<int>(
      std::clamp<std::int64_t>(blocks / (kLeastBlocks * stream_blocks), 1,
                               device::kMostStreams / (stream_blocks * config.cluster)));
}

int clocks_between_loads(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  constexpr double kOfMemory = 0.9;  // share of the bandwidth; 0.7 to 1 performed alike
  if (std::ranges::none_of(spec.panels, awaits_rows)) return 0;
  const double bytes = blocks * config.slot_stages() * config.b_bytes() / config.cluster;
  return static_cast<int>(bytes / (kOfMemory * streamed_from_memory(blocks)));
}

StreamEstimate estimate_streams(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  StreamEstimate best{.clocks = std::numeric_limits<double>::infinity()};
  for (int shares = 1; shares <= device::kMostStreamBlocks; ++shares) {
    if (!can_share_streams(spec, config, shares)) continue;
    const int at_once = clusters_of(blocks, shares * config.cluster);
    if (at_once == 0) continue;
    const int most = std::min(most_streams(spec, config, shares), at_once);
    // Use more than two fifths of the SMs, if K is long enough.
    const int few =
        std::max(most * 2 / 5, std::min(most - 1, blocks * 2 / 5 / (shares * config.cluster)));
    for (int streams = most; streams > few; --streams) {
      const double clocks = stream_clocks(spec, config, streams, shares);
      if (clocks >= best.clocks) continue;
      best = {.streams = streams, .stream_blocks = shares, .clocks = clocks};
    }
  }
  return best;
}

}  // namespace harpe::cuda
