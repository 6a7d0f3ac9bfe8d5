#include "bench/cuda/gemm_case.h"

#include <fmt/format.h>

#include <algorithm>

namespace harpe::bench {
namespace {

// Cuts [0, size) into up to `most` ranges, each a multiple of `unit` except the last; returns ends.
std::vector<std::int64_t> random_ends(Draw& draw, std::int64_t size, std::int64_t unit, int most) {
  const std::int64_t units = (size + unit - 1) / unit;
  std::vector<std::int64_t> ends;
  for (std::int64_t cut = draw.below(most); cut > 0 && units > 1; --cut) {
    ends.push_back(unit * draw.between(1, units - 1));
  }
  ends.push_back(size);
  std::ranges::sort(ends);
  const auto repeated = std::ranges::unique(ends);
  ends.erase(repeated.begin(), repeated.end());
  return ends;
}

// Half of the sizes are arbitrary, half are near a multiple of 64.
std::int64_t random_size(Draw& draw, std::int64_t most) {
  if (draw.coin()) return draw.between(1, most);
  return std::max<std::int64_t>(1, 64 * draw.between(1, most / 64) + draw.between(-1, 1));
}

std::string name_case(const GemmCase& what, const device::GemmConfig& config) {
  return fmt::format("{} {}x{}x{}", describe(config), what.m, what.n, what.k);
}

// Panels of a group are consecutive, as in launches; some groups have none.
void group_at_random(Draw& draw, GemmCase& what) {
  what.groups = draw.between(1, 6);
  std::vector<std::int64_t> groups;
  for (std::size_t i = 0; i < what.panels.size(); ++i) groups.push_back(draw.below(what.groups));
  std::ranges::sort(groups);
  for (std::size_t i = 0; i < groups.size(); ++i) what.panels[i].group = groups[i];
}

}  // namespace

std::vector<PanelCut> uncut(std::int64_t m, std::int64_t k) { return equal_panels(m, k, 1); }

std::vector<PanelCut> equal_panels(std::int64_t m, std::int64_t k, int panels) {
  std::vector<PanelCut> cuts;
  for (int panel = 0; panel < panels; ++panel) {
    const std::int64_t begin = m * panel / panels;
    const std::int64_t rows = m * (panel + 1) / panels - begin;
    if (rows > 0) cuts.push_back({.row_begin = begin, .rows = rows, .k_chunks = {{0, k}}});
  }
  return cuts;
}

std::vector<PanelCut> random_cuts(Draw& draw, std::int64_t m, std::int64_t k, int most_panels,
                                  int most_k_chunks, std::int64_t row_unit) {
  std::vector<PanelCut> panels;
  std::int64_t row = 0;
  for (const std::int64_t row_end : random_ends(draw, m, row_unit, most_panels)) {
    PanelCut panel = {.row_begin = row, .rows = row_end - row, .k_chunks = {}};
    std::int64_t column = 0;
    for (const std::int64_t column_end : random_ends(draw, k, 64, most_k_chunks)) {
      panel.k_chunks.push_back({.k_begin = column, .k_count = column_end - column});
      column = column_end;
    }
    draw.shuffle(panel.k_chunks);
    panels.push_back(std::move(panel));
    row = row_end;
  }
  draw.shuffle(panels);
  return panels;
}

void cut_at_random(Draw& draw, const device::GemmConfig& config, GemmCase& what, int most_panels,
                   int most_k_chunks) {
  if (config.few_rows) {
    constexpr std::int64_t kAlign = device::GemmConfig::kRowAlign;
    const int rows = config.tile_m * config.cluster;
    most_panels = std::min(most_panels, static_cast<int>(rows / kAlign));
    // Each panel may be rounded up.
    what.m = std::min(what.m, rows - (most_panels - 1) * (kAlign - 1));
    what.name = name_case(what, config);
  }
  constexpr std::int64_t kAligned = 8;  // required by copies of rows along M
  what.panels = random_cuts(draw, what.m, what.k, most_panels, config.groups ? 1 : most_k_chunks,
                            config.m_major ? kAligned : 1);
  if (config.groups) group_at_random(draw, what);
  if (!config.few_rows) return;
  for (PanelCut& panel : what.panels) std::ranges::sort(panel.k_chunks, {}, &KChunkCut::k_begin);
}

std::int64_t columns_for(const device::GemmConfig& config, std::int64_t n) {
  const std::int64_t step = device::in_bulk(config.store) ? 16 / device::bytes_of(config.out) : 1;
  return (n + step - 1) / step * step;
}

std::int64_t depth_for(const device::GemmConfig& config, std::int64_t k) {
  const bool is_whole = config.groups && config.layout == device::GemmLayout::NMajor;
  const std::int64_t step = is_whole ? device::GemmConfig::kTileK : 1;
  return (k + step - 1) / step * step;
}

std::vector<device::GemmMap> maps_of(const device::GemmConfig& config) {
  std::vector<device::GemmMap> maps;
  for (const device::GemmMap map : config.maps) {
    if (map != device::GemmMap::None) maps.push_back(map);
  }
  return maps;
}

GemmCase random_case(Draw& draw, const device::GemmConfig& config, std::int64_t most) {
  GemmCase random = {.name = "",
                     .m = config.few_rows
                              ? draw.between(1, std::int64_t{config.tile_m} * config.cluster)
                              : random_size(draw, most),
                     .n = columns_for(config, random_size(draw, most)),
                     .k = depth_for(config, random_size(draw, 2 * most)),
                     .in = config.in,
                     .out = config.out,
                     .layout = config.layout,
                     .m_major = config.m_major,
                     .store = config.store,
                     .panels = {},
                     .maps = maps_of(config),
                     .groups = config.groups ? 1 : 0};
  random.panels = uncut(random.m, random.k);
  random.name = name_case(random, config);
  return random;
}

std::string_view name_of(device::Element element) {
  if (element == device::Element::F32) return "f32";
  return element == device::Element::F16 ? "f16" : "bf16";
}

std::string describe(const device::GemmConfig& config) {
  std::string text = fmt::format(
      "{}x{}s{}c{}{}{}{} {}{} {}->{}", config.tile_m, config.tile_n, config.stages, config.cluster,
      config.ping_pong ? "p" : "", config.boxes_in_stage ? "b" : "", config.swapped ? "w" : "",
      config.m_major ? "km " : "", config.layout == device::GemmLayout::KMajor ? "nk" : "kn",
      name_of(config.in), name_of(config.out));
  if (!device::in_bulk(config.store)) text += " direct";
  if (device::adds(config.store)) text += " add";
  if (config.few_rows) return text + " few rows";
  if (config.groups) return text + " groups";
  if (config.by_threads) return text + " by threads";
  if (config.cuts) text += " cuts";
  if (config.copies) text += " copies";
  for (const device::GemmMap map : maps_of(config)) {
    text += map == device::GemmMap::Gelu ? " gelu" : " row";
  }
  return text;
}

}  // namespace harpe::bench
