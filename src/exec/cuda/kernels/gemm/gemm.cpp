#include "exec/cuda/kernels/gemm/gemm.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "exec/cuda/kernels/element_words.h"
#include "exec/cuda/kernels/gemm/device/gemm_order.h"
#include "exec/cuda/kernels/gemm/device/part_ticket.h"
#include "exec/cuda/kernels/gemm/few_rows.h"
#include "exec/cuda/kernels/gemm/gemm_variants.h"
#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/kernels/spec_checks.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

using device::GemmConfig;
using device::GemmStore;

constexpr std::int64_t kTileK = GemmConfig::kTileK;

bool has_own_rows(const GemmPanelSpec& panel) { return panel.rows_of < 0; }

std::int64_t k_blocks(const GemmPanelSpec& panel) {
  std::int64_t blocks = 0;
  for (const GemmKChunkSpec& k_chunk : panel.k_chunks)
    blocks += (k_chunk.k_count + kTileK - 1) / kTileK;
  return blocks;
}

GemmStore store_of(const GemmSpec& spec) {
  if (spec.add) return stores_in_bulk(spec) ? GemmStore::Add : GemmStore::DirectAdd;
  return stores_in_bulk(spec) ? GemmStore::Bulk : GemmStore::Direct;
}

Diag not_a_partition(std::int64_t begin, std::int64_t end, std::int64_t covered, std::int64_t k) {
  return make_diag(DiagCode::G042,
                   {{"begin", begin}, {"end", end}, {"covered", covered}, {"k", k}});
}

// K chunks must cover columns 0 .. k once and begin at multiples of a stage.
Checked<Ok> check_k_chunks(const GemmPanelSpec& panel, std::int64_t k) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const GemmKChunkSpec& k_chunk : panel.k_chunks)
    ranges.emplace_back(k_chunk.k_begin, k_chunk.k_count);
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

// None if the kernel has no such map.
std::optional<device::GemmMap> find_map(const GemmMapSpec& map) {
  if (map.leaf == Leaf::Add && map.is_row) return device::GemmMap::AddRow;
  if (map.leaf == Leaf::Gelu) return device::GemmMap::Gelu;
  return std::nullopt;
}

// Whether a variant may have the spec's maps: all panels must add the same row.
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

// The tile as a variant for the spec, which may not be shipped. Requires: can_map.
GemmConfig config_for(const GemmSpec& spec, GemmConfig tile) {
  tile.in = spec.in;
  tile.out = spec.out;
  tile.layout = spec.layout;
  tile.m_major = spec.m_major;
  tile.store = store_of(spec);
  tile.cuts = tile.cuts && device::in_bulk(tile.store);
  for (std::size_t i = 0; i < spec.maps.size(); ++i) tile.maps[i] = *find_map(spec.maps[i]);
  return tile;
}

// Whether the variant stores panels that share rows as the spec requires. The few-row kernel stores
// the sums without addends, or totals; tile kernels store the other panel's result, or, by threads,
// the sums without addends and one total of what kernels have stored.
bool stores_again(const GemmSpec& spec, const GemmConfig& config) {
  return std::ranges::all_of(spec.panels, [&](const GemmPanelSpec& panel) {
    if (has_own_rows(panel)) return true;
    const bool is_of_sum = spec.panels[static_cast<std::size_t>(panel.rows_of)].addends.empty();
    if (config.moves_by_threads()) return !panel.is_copy || is_of_sum;
    return config.store == device::GemmStore::Bulk && panel.addends.empty() &&
           (panel.is_copy || is_of_sum);
  });
}

// Whether threads of tile kernels may exchange the spec's sums: each panel of its own rows leaves
// its sums to a panel that adds them up, which no rank awaits.
bool suits_threads(const GemmSpec& spec) {
  if (std::ssize(spec.panels) > GemmConfig::kMostNotedPanels) return false;
  std::vector<bool> has_total(spec.panels.size(), false);
  std::int64_t awaited = 0;
  std::int64_t addends = 0;
  for (const GemmPanelSpec& panel : spec.panels) {
    if (panel.addends.empty()) continue;
    if (has_own_rows(panel) || is_awaited(panel)) return false;
    has_total[static_cast<std::size_t>(panel.rows_of)] = true;
    addends += std::ssize(panel.addends);
    const auto from_ranks = std::ranges::count_if(
        panel.addends, [](const GemmAddendSpec& addend) { return addend.ready.flag != nullptr; });
    awaited += from_ranks * panel.rows * spec.n * device::bytes_of(spec.in);
  }
  for (std::size_t i = 0; i < spec.panels.size(); ++i) {
    if (has_own_rows(spec.panels[i]) && !has_total[i]) return false;
  }
  return addends <= device::kMostNotedAddends && awaited <= kMostInData;
}

// Addends are of bf16 alone: f16 sums may exceed the range of the f16 in which they arrive.
bool serves(const GemmSpec& spec, const GemmConfig& config) {
  const bool adds = config.takes_addends() && spec.in == device::Element::BF16;
  return ships(config) && config.groups == has_groups(spec) && stores_again(spec, config) &&
         (!config.few_rows || suits_few_rows(spec, config)) &&
         (!config.by_threads || suits_threads(spec)) &&
         (spec.copy_blocks == 0 || (config.copies && !config.m_major)) &&
         (adds || !has_addends(spec));
}

// If K is no multiple of a stage, TMA reads beyond the last row of a group's B. The values there
// meet zeros of A, but may be NaN. Only NMajor B has rows along K.
bool is_whole(const GemmSpec& spec) {
  return spec.b_rows == 0 || spec.layout == device::GemmLayout::KMajor || spec.k % kTileK == 0;
}

// Panels that share rows come last and name a panel with its own. Of the panels of the same rows at
// most one has addends.
bool share_rows_well(const GemmSpec& spec) {
  std::vector<bool> has_sum(spec.panels.size(), false);
  for (std::size_t i = 0; i < spec.panels.size(); ++i) {
    const GemmPanelSpec& panel = spec.panels[i];
    const std::size_t of = has_own_rows(panel) ? i : static_cast<std::size_t>(panel.rows_of);
    if (of >= spec.panels.size()) return false;
    if (of != i && (!has_own_rows(spec.panels[of]) || spec.panels[of].rows != panel.rows ||
                    !panel.k_chunks.empty())) {
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
  return panel.k_chunks.size() == 1 && panel.k_chunks.front().ready.flag == nullptr &&
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
  if (spec.copy_blocks > 0) what += ", copying thread blocks";
  if (has_groups(spec)) what += ", groups";
  if (!spec.maps.empty()) what += ", maps";
  if (spec.m_major) what += ", A stored as its transpose";
  return make_diag(DiagCode::G060, {{"family", "gemm"}, {"what", what}});
}

// Sizes must fit the kernel's arithmetic, and thread blocks must be left to compute tiles. The
// number of copying blocks is even, since clusters have up to two blocks.
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
  std::size_t k_chunks = 0;
  for (const GemmPanelSpec& panel : spec.panels) {
    k_chunks += panel.k_chunks.size() + panel.addends.size();
  }
  return spec.panels.size() <= device::GemmArgs::kFew && k_chunks <= device::GemmArgs::kFew;
}

bool has_copies_in_arguments(const GemmSpec& spec) {
  const auto may_take = [&](const GemmConfig& tile) {
    return tile.few_rows && rows_in_tile(spec) <= std::int64_t{tile.tile_m} * tile.cluster;
  };
  return spec.copies.size() <= device::GemmArgs::kFew &&
         std::ranges::none_of(gemm_tiles(), may_take);
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
    if (has_own_rows(panel)) HP_REQUIRE_OK(check_k_chunks(panel, spec.k));
    for (const GemmKChunkSpec& k_chunk : panel.k_chunks) {
      HP_REQUIRE_OK(check_aligned("A", k_chunk.a, std::array{k_chunk.stride}, spec.in));
      HP_REQUIRE_OK(check_aligned("B", k_chunk.b, std::array{spec.b_stride}, spec.in));
    }
    for (const GemmAddendSpec& addend : panel.addends) {
      HP_REQUIRE_OK(check_aligned("addend", addend.address, std::array{addend.stride}, spec.in));
    }
  }
  return Ok{};
}

bool has_addends(const GemmSpec& spec) {
  return std::ranges::any_of(spec.panels,
                             [](const GemmPanelSpec& panel) { return !panel.addends.empty(); });
}

bool can_join(const GemmSpec& spec) {
  return spec.copy_blocks > 0 && std::ranges::none_of(spec.copies, [](const device::CopyJob& copy) {
           return copy.ready.flag != nullptr;
         });
}

bool adds_to_sums(const GemmPanelSpec& panel) {
  return has_own_rows(panel) && !panel.addends.empty();
}

bool adds_to_sums(const GemmSpec& spec) {
  return std::ranges::any_of(spec.panels,
                             [](const GemmPanelSpec& panel) { return adds_to_sums(panel); });
}

bool sends_sums(const GemmPanelSpec& panel) {
  return has_own_rows(panel) && panel.addends.empty() && is_awaited(panel);
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
      panel.k_chunks, [](const GemmKChunkSpec& k_chunk) { return k_chunk.ready.flag != nullptr; });
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

std::int64_t cluster_tiles(const GemmSpec& spec, const GemmConfig& config,
                           const GemmPanelSpec& panel) {
  if (!has_own_rows(panel)) return 0;
  const std::int64_t rows = std::int64_t{config.tile_m} * config.cluster;
  return (panel.rows + rows - 1) / rows * ((spec.n + config.tile_n - 1) / config.tile_n);
}

std::int64_t cluster_tiles(const GemmSpec& spec, const GemmConfig& config) {
  std::int64_t tiles = 0;
  for (const GemmPanelSpec& panel : spec.panels) tiles += cluster_tiles(spec, config, panel);
  return tiles;
}

std::int64_t least_blocks(const GemmSpec& spec) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const GemmPanelSpec& panel : spec.panels) {
    if (has_own_rows(panel)) least = std::min(least, k_blocks(panel));
  }
  return least;
}

int most_parts(const GemmSpec& spec) {
  constexpr std::int64_t kLeastBlocks = 4;  // K blocks of a part
  constexpr std::int64_t kMost = device::PartTicket::kMostParts;
  return static_cast<int>(std::min(kMost, least_blocks(spec) / kLeastBlocks));
}

GemmChoice whole_gemm(const GemmSpec& spec, const GemmConfig& config) {
  return {.config = config,
          .full_tiles = config.few_rows ? 0 : static_cast<int>(cluster_tiles(spec, config)),
          .parts = 1,
          .group = config.cluster == 2 ? 8 : 16};
}

std::uint32_t arrivals(const GemmPanelSpec& panel, std::int64_t n, const GemmChoice& choice) {
  const GemmConfig& config = choice.config;
  const std::int64_t rows = config.few_rows ? 1 : (panel.rows + config.tile_m - 1) / config.tile_m;
  const std::int64_t columns = (n + config.tile_n - 1) / config.tile_n;
  const std::int64_t blocks = config.few_rows ? cluster_of(choice) : 1;
  return static_cast<std::uint32_t>(rows * columns * config.arrivals_per_tile() * blocks);
}

bool adds_up_all(const GemmSpec& spec) {
  return std::ranges::any_of(spec.panels, [](const GemmPanelSpec& panel) {
    return panel.rows_of >= 0 && !panel.addends.empty();
  });
}

// A tile of few K blocks takes no longer than the last wave of sums takes to cross the link. If the
// sums left at once, they would hold up its operands, so they leave as fast as that wave fills the
// link. A tile of more K blocks outlasts them. With bands the next tiles do not await the last
// sums.
int last_clocks(const GemmSpec& spec, const GemmConfig& config, int clusters) {
  const int full = config.clocks_of_full_link();
  const auto k_blocks = static_cast<int>(least_blocks(spec));
  const auto totals = std::ranges::count_if(
      spec.panels, [](const GemmPanelSpec& panel) { return adds_to_sums(panel); });
  if (!config.ping_pong || totals == 0 || config.clocks_of_next_tile(k_blocks) >= full) return 0;
  if (totals > 1) return full;
  std::int64_t rows = 0;
  std::int64_t tiles = 0;
  for (const GemmPanelSpec& panel : spec.panels) {
    if (!sends_sums(panel)) continue;
    rows += panel.rows;
    tiles += cluster_tiles(spec, config, panel);
  }
  if (tiles == 0) return 0;
  const std::int64_t in_wave = (tiles - 1) % clusters + 1;
  const std::int64_t in_tile = std::int64_t{config.tile_m} * config.tile_n * config.cluster;
  const double filled = static_cast<double>(rows * spec.n) / static_cast<double>(tiles * in_tile);
  const double share = filled * static_cast<double>(in_wave) / static_cast<double>(clusters);
  return static_cast<int>(full * share);
}

}  // namespace harpe::cuda
