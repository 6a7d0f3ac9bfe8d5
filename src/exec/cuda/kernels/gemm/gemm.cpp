#include "exec/cuda/kernels/gemm/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "exec/cuda/kernels/element_words.h"
#include "exec/cuda/kernels/gemm/device/gemm_order.h"
#include "exec/cuda/kernels/gemm/few_rows.h"
#include "exec/cuda/kernels/gemm/gemm_variants.h"
#include "exec/cuda/kernels/spec_checks.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

using device::GemmConfig;
using device::GemmStore;

constexpr std::int64_t kTileK = GemmConfig::kTileK;

bool has_own_rows(const GemmPanelSpec& panel) { return panel.rows_of < 0; }

std::int64_t cluster_tiles(const GemmSpec& spec, const GemmConfig& config) {
  const std::int64_t rows = std::int64_t{config.tile_m} * config.cluster;
  const std::int64_t columns = (spec.n + config.tile_n - 1) / config.tile_n;
  std::int64_t tiles = 0;
  for (const GemmPanelSpec& panel : spec.panels) {
    if (has_own_rows(panel)) tiles += (panel.rows + rows - 1) / rows * columns;
  }
  return tiles;
}

// Those that groups are likely to have: rows that choices bring vary by their square root, and the
// last chunk of a panel is half empty.
std::int64_t group_tiles(const GemmSpec& spec, const GemmConfig& config) {
  std::map<std::int64_t, double> rows;  // by B
  std::map<std::int64_t, double> ends;
  for (const GemmPanelSpec& panel : spec.panels) {
    const bool known = panel.likely_rows == 0;
    rows[panel.b_first] += static_cast<double>(known ? panel.rows : panel.likely_rows);
    ends[panel.b_first] += known ? 0 : config.chunk_rows() / 2.0;
  }
  double tiles = 0;
  for (const auto& [first, count] : rows) {
    const double spread = ends.at(first) > 0 ? 2 * std::sqrt(count) + ends.at(first) : 0;
    tiles += std::ceil((count + spread) / config.tile_m);
  }
  return static_cast<std::int64_t>(tiles) * ((spec.n + config.tile_n - 1) / config.tile_n);
}

std::int64_t k_blocks(const GemmPanelSpec& panel) {
  std::int64_t blocks = 0;
  for (const GemmPieceSpec& piece : panel.pieces) blocks += (piece.k_count + kTileK - 1) / kTileK;
  return blocks;
}

// The shortest panel's without its addends: what all can be cut into.
std::int64_t least_blocks(const GemmSpec& spec) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const GemmPanelSpec& panel : spec.panels) {
    if (has_own_rows(panel)) least = std::min(least, k_blocks(panel));
  }
  return least;
}

// What is lost of the tensor cores' time: tiles of 320 columns have few stages, and those of 64
// rows bring much for what they multiply.
double loss_of(const GemmConfig& config) {
  if (config.tile_n >= 320) return config.tile_m == 128 ? 1.03 : 1.15;
  return config.tile_n > 128 ? 1.01 : 1.02;
}

// What a multiprocessor takes, in clocks, fitted to times on H200 (kernel_times.md). The tensor
// cores do 32 values of C, an element of K each, per clock. The second level of cache gives all
// blocks together 7,370 bytes a clock, and one 68; what of B is read once comes from memory, and as
// it does for few rows.
double stage_clocks(const GemmConfig& config, std::int64_t active_blocks, bool reads_memory) {
  const double multiply = config.tile_m * config.tile_n / 32.0 * loss_of(config);
  const auto active = static_cast<double>(active_blocks);
  const double rate = std::min(68.0, (reads_memory ? kStreamedThroughCache : 7370.0) / active);
  const double cached =
      std::max(multiply, (config.a_bytes() + config.b_bytes() / config.cluster) / rate);
  if (!reads_memory) return cached;
  return std::max(cached,
                  config.b_bytes() * active / config.cluster / streamed_from_memory(active));
}

// Then, and of groups, few rows use each weight, and what another tile reads of them is not found
// in the cache.
bool has_one_row_of_tiles(const GemmSpec& spec, const GemmConfig& config) {
  return spec.panels.size() == 1 && spec.panels.front().rows <= config.tile_m * config.cluster;
}

// What is not hidden of storing a tile; with ping_pong the other consumer multiplies meanwhile.
double store_clocks(const GemmConfig& config) {
  return config.ping_pong ? 800.0 : 8.5 * config.tile_n;
}

// A launch's ramp, of a cluster's blocks together, and storing the last tile, which nothing hides.
// Where one cluster has all rows, and each block some, what it saves of memory makes up for that.
double edge_clocks(const GemmSpec& spec, const GemmConfig& config) {
  const bool has_all =
      has_one_row_of_tiles(spec, config) && spec.panels.front().rows > config.tile_m;
  return 5400.0 + (config.cluster == 1 || has_all ? 0.0 : 1000.0) +
         (config.ping_pong ? 0.21 * config.tile_m * config.tile_n : 7.0 * config.tile_n);
}

// `rounds` times writing one's sums, then for the last of a tile reading everybody's.
double cut_clocks(const GemmConfig& config, int parts, std::int64_t rounds) {
  return 9000.0 * static_cast<double>(rounds) +
         (1 + parts) * config.tile_m * config.tile_n * 4 / 61.0;
}

struct Tail {
  int parts = 1;
  double clocks = 0;
};

// `rest` tiles that do not fill a wave: cut so that they fill waves of shares, of which `clocks_of`
// says what a tile takes with so many of its parts.
template <class ClocksOf>
Tail best_tail(const GemmConfig& config, std::int64_t rest, std::int64_t clusters, int most_parts,
               const ClocksOf& clocks_of) {
  Tail best{.parts = 1, .clocks = rest == 0 ? 0.0 : clocks_of(1)};
  if (!config.cuts) return best;
  for (int parts = 2; parts <= most_parts && rest > 0; ++parts) {
    const std::int64_t rounds = (rest * parts + clusters - 1) / clusters;
    const double clocks =
        static_cast<double>(rounds) * clocks_of(parts) / parts + cut_clocks(config, parts, rounds);
    if (clocks < best.clocks) best = {.parts = parts, .clocks = clocks};
  }
  return best;
}

// The part of the panels whose rows are awaited.
double awaited_share(const GemmSpec& spec) {
  const auto awaited = std::ranges::count_if(spec.panels, awaits_rows);
  return static_cast<double>(awaited) / static_cast<double>(spec.panels.size());
}

struct Estimate {
  GemmChoice choice;
  double clocks = 0;
};

Estimate estimate(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  const std::int64_t clusters = (blocks - spec.copy_blocks) / config.cluster;
  HP_CHECK(clusters > 0, "check() was not asked");
  if (config.few_rows) {
    const StreamEstimate found = estimate_streams(spec, config, blocks - spec.copy_blocks);
    GemmChoice choice = whole_gemm(spec, config);
    choice.parts = found.streams;
    choice.stream_blocks = found.stream_blocks;
    return {.choice = choice, .clocks = found.clocks};
  }
  const std::int64_t tiles =
      config.groups ? group_tiles(spec, config) : cluster_tiles(spec, config);
  const auto least = static_cast<double>(least_blocks(spec));
  const bool is_one_row = has_one_row_of_tiles(spec, config);
  // Parts of few tiles share what memory gives.
  const auto tile_clocks = [&](int parts) {
    const std::int64_t at_once = std::min(clusters, is_one_row ? tiles * parts : tiles);
    return least * stage_clocks(config, at_once * config.cluster, is_one_row || config.groups) +
           store_clocks(config);
  };
  const std::int64_t rest = tiles % clusters;
  const Tail tail = best_tail(config, rest, clusters, most_parts(spec), tile_clocks);
  GemmChoice choice = whole_gemm(spec, config);
  if (tail.parts > 1) {
    choice.full_tiles = static_cast<int>(tiles - rest);
    choice.parts = tail.parts;
  }
  // What comes last may find all blocks at work: of two that are alike the small tile is over
  // first.
  constexpr double kHeld = 0.1;
  const double waves = static_cast<double>(tiles / clusters) + kHeld * awaited_share(spec);
  return {.choice = choice,
          .clocks = edge_clocks(spec, config) + waves * tile_clocks(1) + tail.clocks};
}

device::GemmStore store_of(const GemmSpec& spec) {
  if (spec.add) return stores_in_bulk(spec) ? GemmStore::Add : GemmStore::DirectAdd;
  return stores_in_bulk(spec) ? GemmStore::Bulk : GemmStore::Direct;
}

Diag not_a_partition(std::int64_t begin, std::int64_t end, std::int64_t covered, std::int64_t k) {
  return make_diag(DiagCode::G042,
                   {{"begin", begin}, {"end", end}, {"covered", covered}, {"k", k}});
}

// Together the columns 0 .. k once, cut at multiples of a stage.
Checked<Ok> check_pieces(const GemmPanelSpec& panel, std::int64_t k) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const GemmPieceSpec& piece : panel.pieces) ranges.emplace_back(piece.k_begin, piece.k_count);
  std::ranges::sort(ranges);
  std::int64_t covered = 0;
  for (const auto& [begin, count] : ranges) {
    if (begin != covered || begin % GemmConfig::kTileK != 0 || count <= 0) {
      return not_a_partition(begin, begin + count, covered, k);
    }
    covered += count;
  }
  if (covered != k) return not_a_partition(covered, k, covered, k);
  return Ok{};
}

// None where the kernel has no such map.
std::optional<device::GemmMap> find_map(const GemmMapSpec& map) {
  if (map.leaf == Leaf::Add && map.is_row) return device::GemmMap::AddRow;
  if (map.leaf == Leaf::Gelu) return device::GemmMap::Gelu;
  return std::nullopt;
}

// Whether there may be a variant with the spec's maps: all panels add the same row.
bool can_map(const GemmSpec& spec) {
  const auto address = &GemmMapOperandSpec::address;
  const auto& operands = spec.panels.front().map_operands;
  return spec.maps.size() <= GemmConfig::kMostMaps &&
         std::ranges::all_of(spec.maps,
                             [](const auto& map) { return find_map(map).has_value(); }) &&
         std::ranges::all_of(spec.panels, [&](const GemmPanelSpec& panel) {
           return std::ranges::equal(panel.map_operands, operands, {}, address, address);
         });
}

// The tile as a variant for the spec; whether it is shipped is to be asked. Requires: can_map.
GemmConfig config_for(const GemmSpec& spec, GemmConfig tile) {
  tile.in = spec.in;
  tile.out = spec.out;
  tile.layout = spec.layout;
  tile.m_major = spec.m_major;
  tile.store = store_of(spec);
  for (std::size_t i = 0; i < spec.maps.size(); ++i) tile.maps[i] = *find_map(spec.maps[i]);
  return tile;
}

// Whether panels that have the rows of another are stored as they should be. The kernel of few rows
// stores sums without addends, and totals; the other one what it stores for the panel before.
bool stores_again(const GemmSpec& spec, const GemmConfig& config) {
  return std::ranges::all_of(spec.panels, [&](const GemmPanelSpec& panel) {
    if (has_own_rows(panel)) return true;
    const bool is_of_sum = spec.panels[static_cast<std::size_t>(panel.rows_of)].addends.empty();
    if (config.few_rows) return !panel.is_copy || is_of_sum;
    return config.store == device::GemmStore::Bulk && panel.addends.empty() &&
           (panel.is_copy || is_of_sum);
  });
}

// Sums of f16 may be beyond its range, in which they would be added.
bool serves(const GemmSpec& spec, const GemmConfig& config) {
  const bool adds = config.takes_addends() && spec.in == device::Element::BF16;
  return ships(config) && config.groups == has_groups(spec) && stores_again(spec, config) &&
         (!config.few_rows || suits_few_rows(spec, config)) &&
         (spec.copy_blocks == 0 || (config.copies && !config.m_major)) &&
         (adds || !has_addends(spec));
}

// The copy engine reads behind the last row of a group's B where K is no multiple of a stage: what
// is multiplied by the zeros behind A may be no number. Rows are B's along K.
bool is_whole(const GemmSpec& spec) {
  return spec.b_rows == 0 || spec.layout == device::GemmLayout::KMajor || spec.k % kTileK == 0;
}

// Those without are behind, and have the rows of one that has. Of panels of the same rows one has
// addends at most.
bool share_rows_well(const GemmSpec& spec) {
  std::vector<bool> has_sum(spec.panels.size(), false);
  for (std::size_t i = 0; i < spec.panels.size(); ++i) {
    const GemmPanelSpec& panel = spec.panels[i];
    const std::size_t of = has_own_rows(panel) ? i : static_cast<std::size_t>(panel.rows_of);
    if (of >= spec.panels.size()) return false;
    if (of != i && (!has_own_rows(spec.panels[of]) || spec.panels[of].rows != panel.rows ||
                    !panel.pieces.empty())) {
      return false;
    }
    if (panel.is_copy && (of == i || !panel.addends.empty())) return false;
    if (panel.addends.empty()) continue;
    if (has_sum[of]) return false;
    has_sum[of] = true;
  }
  return std::ranges::is_partitioned(spec.panels, has_own_rows);
}

bool is_plain(const GemmPanelSpec& panel) {
  return panel.pieces.size() == 1 && panel.pieces.front().ready.flag == nullptr &&
         panel.addends.empty() && !is_awaited(panel);
}

Checked<Ok> check_kernel(const GemmSpec& spec) {
  const bool can =
      can_map(spec) && share_rows_well(spec) &&
      (!has_groups(spec) || (is_whole(spec) && std::ranges::all_of(spec.panels, is_plain)));
  for (const GemmConfig& tile : gemm_tiles()) {
    if (can && serves(spec, config_for(spec, tile))) return Ok{};
  }
  std::string what = std::string(word_of(spec.in)) + " to " + word_of(spec.out);
  if (spec.add) what += ", added";
  if (!stores_in_bulk(spec)) what += ", rows of C that are no multiples of 16 bytes";
  if (has_addends(spec)) what += ", addends";
  if (!std::ranges::all_of(spec.panels, has_own_rows)) what += ", panels of the same rows";
  if (spec.copy_blocks > 0) what += ", blocks that copy";
  if (has_groups(spec)) what += ", groups";
  if (!spec.maps.empty()) what += ", maps";
  if (spec.m_major) what += ", A stored as its transpose";
  return make_diag(DiagCode::G060, {{"family", "gemm"}, {"what", what}});
}

// Sizes that the kernel's arithmetic holds, and blocks left for products. Copying blocks are pairs,
// as clusters are.
Checked<Ok> check_counts(const GemmSpec& spec, int blocks) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  HP_REQUIRE_OK(check_count("columns of C", spec.n, 1, kMost));
  HP_REQUIRE_OK(check_count("columns of A", spec.k, 1, kMost));
  const std::int64_t most_panels = has_groups(spec) ? GemmConfig::kMostPanels : kMost;
  HP_REQUIRE_OK(
      check_count("panels", static_cast<std::int64_t>(spec.panels.size()), 1, most_panels));
  for (const GemmPanelSpec& panel : spec.panels) {
    HP_REQUIRE_OK(check_count("rows of a panel", panel.rows, 1, kMost));
  }
  HP_REQUIRE_OK(check_count("copying blocks", spec.copy_blocks, 0, blocks - 2));
  const int pairs = (spec.copy_blocks + 1) / 2 * 2;
  return check_count("copying blocks", spec.copy_blocks, pairs, pairs);
}

}  // namespace

bool fit_in_arguments(const GemmSpec& spec) {
  std::size_t pieces = 0;
  for (const GemmPanelSpec& panel : spec.panels) {
    pieces += panel.pieces.size() + panel.addends.size();
  }
  return spec.panels.size() <= device::GemmArgs::kFew && pieces <= device::GemmArgs::kFew;
}

bool stores_in_bulk(const GemmSpec& spec) {
  return std::ranges::all_of(spec.panels, [&](const GemmPanelSpec& panel) {
    const std::int64_t bytes = device::bytes_of(spec.out);
    return panel.c % 16 == 0 && panel.c_stride * bytes % 16 == 0 && spec.n * bytes % 16 == 0;
  });
}

Checked<Ok> check(const GemmSpec& spec, int blocks) {
  HP_REQUIRE_OK(check_counts(spec, blocks));
  HP_REQUIRE_OK(check_kernel(spec));
  HP_REQUIRE_OK(check_aligned("B", spec.b, std::array{spec.b_stride}, spec.in));
  for (const GemmPanelSpec& panel : spec.panels) {
    if (has_own_rows(panel)) HP_REQUIRE_OK(check_pieces(panel, spec.k));
    for (const GemmPieceSpec& piece : panel.pieces) {
      HP_REQUIRE_OK(check_aligned("A", piece.a, std::array{piece.stride}, spec.in));
      HP_REQUIRE_OK(check_aligned("B", piece.b, std::array{spec.b_stride}, spec.in));
    }
    for (const GemmAddendSpec& addend : panel.addends) {
      HP_REQUIRE_OK(check_aligned("addend", addend.address, std::array{addend.stride}, spec.in));
    }
  }
  return Ok{};
}

GemmChoice cut_gemm(const GemmSpec& spec, const GemmConfig& config, int blocks) {
  return estimate(spec, config, blocks).choice;
}

bool has_addends(const GemmSpec& spec) {
  return std::ranges::any_of(spec.panels,
                             [](const GemmPanelSpec& panel) { return !panel.addends.empty(); });
}

bool adds_to_sums(const GemmSpec& spec) {
  return std::ranges::any_of(spec.panels, [](const GemmPanelSpec& panel) {
    return panel.rows_of < 0 && !panel.addends.empty();
  });
}

int row_panels(const GemmSpec& spec) {
  return static_cast<int>(std::ranges::count_if(spec.panels, has_own_rows));
}

bool has_groups(const GemmSpec& spec) {
  return spec.b_rows != 0 || std::ranges::any_of(spec.panels, [](const GemmPanelSpec& panel) {
           return panel.used.rows != nullptr;
         });
}

bool awaits_rows(const GemmPanelSpec& panel) {
  return std::ranges::any_of(
      panel.pieces, [](const GemmPieceSpec& piece) { return piece.ready.flag != nullptr; });
}

bool is_awaited(const GemmPanelSpec& panel) { return panel.done != 0 || panel.fused_store >= 0; }

std::vector<GemmConfig> gemm_configs(const GemmSpec& spec) {
  std::vector<GemmConfig> configs;
  for (const GemmConfig& tile : gemm_tiles()) {
    const GemmConfig config = config_for(spec, tile);
    if (serves(spec, config)) configs.push_back(config);
  }
  return configs;
}

int most_parts(const GemmSpec& spec) {
  constexpr std::int64_t kLeastBlocks = 4;  // of a part
  constexpr std::int64_t kMostParts = 12;
  return static_cast<int>(std::min(kMostParts, least_blocks(spec) / kLeastBlocks));
}

GemmChoice whole_gemm(const GemmSpec& spec, const GemmConfig& config) {
  return {.config = config,
          .full_tiles = config.few_rows ? 0 : static_cast<int>(cluster_tiles(spec, config)),
          .parts = 1,
          .group = config.cluster == 2 ? 8 : 16};
}

GemmChoice choose_gemm(const GemmSpec& spec, int blocks) {
  const bool is_awaited_inside = std::ranges::any_of(spec.panels, is_awaited);
  Estimate best{.choice = {}, .clocks = std::numeric_limits<double>::infinity()};
  const std::vector<GemmConfig> configs = gemm_configs(spec);
  // Up to so many, no other kernel was faster by more than what it varies by (kernel_times.md).
  constexpr std::int64_t kRowsOfOneKernel = 32;
  const bool has_few = std::ranges::any_of(configs, &GemmConfig::few_rows);
  const bool are_few = has_few && rows_in_tile(spec) <= kRowsOfOneKernel;
  for (const GemmConfig& config : configs) {
    if (are_few && !config.few_rows) continue;
    // Stores to a peer take their time: one consumer multiplies meanwhile.
    if (is_awaited_inside && !config.ping_pong && !config.few_rows) continue;
    const Estimate found = estimate(spec, config, blocks);
    if (found.clocks < best.clocks) best = found;
  }
  HP_CHECK(std::isfinite(best.clocks), "check() was not asked");
  return best.choice;
}

std::uint32_t arrivals(const GemmPanelSpec& panel, std::int64_t n, const GemmChoice& choice) {
  const GemmConfig& config = choice.config;
  const std::int64_t rows = config.few_rows ? 1 : (panel.rows + config.tile_m - 1) / config.tile_m;
  const std::int64_t columns = (n + config.tile_n - 1) / config.tile_n;
  const std::int64_t blocks = config.few_rows ? cluster_of(choice) : 1;
  return static_cast<std::uint32_t>(rows * columns * config.arrivals_per_tile() * blocks);
}

}  // namespace harpe::cuda
