#include "exec/cuda/kernels/gemm/gemm_variants.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "exec/cuda/kernels/element_words.h"

namespace harpe::cuda {
namespace {

using device::Element;
using device::GemmConfig;
using device::GemmLayout;
using device::GemmMap;
using device::GemmStore;

// Tiles of many rows, which may be cut along K. `boxes`: of C for each consumer.
constexpr GemmConfig tile(int rows, int columns, int stages, int cluster, int boxes = 2) {
  return {.tile_m = rows,
          .tile_n = columns,
          .stages = stages,
          .cluster = cluster,
          .boxes = boxes,
          .cuts = true};
}

constexpr GemmConfig ping_pong(GemmConfig config) {
  config.ping_pong = true;
  return config;
}

constexpr GemmConfig in_stage(GemmConfig config) {
  config.boxes_in_stage = true;
  return config;
}

constexpr GemmConfig swapped(GemmConfig config) {
  config.swapped = true;
  return config;
}

// Some of its thread blocks may make fused copies. 192 sums of a thread leave no registers for
// that.
constexpr GemmConfig copying(GemmConfig config) {
  config.copies = true;
  return config;
}

// Never cut along K.
constexpr GemmConfig whole(GemmConfig config) {
  config.cuts = false;
  return config;
}

constexpr GemmConfig by_threads(GemmConfig config) {
  config = whole(config);
  config.by_threads = true;
  return config;
}

constexpr GemmConfig of_groups(GemmConfig config) {
  config = whole(config);
  config.groups = true;
  return config;
}

constexpr GemmConfig few_rows(int rows, int columns, int stages, int cluster = 1) {
  GemmConfig config = copying(tile(rows, columns, stages, cluster));
  config.few_rows = true;
  return config;
}

// Measurements of each tile: kernel_times.md. 176x128 is not cut: in three plans it was then 1 %
// faster to 10 % slower than 192x128 cut alike.
constexpr std::array kTiles = {
    copying(tile(128, 256, 4, 2)),
    copying(ping_pong(tile(128, 128, 6, 2))),
    copying(tile(128, 256, 4, 1)),
    copying(ping_pong(tile(128, 128, 6, 1))),
    tile(128, 128, 6, 2),
    in_stage(tile(128, 192, 5, 2)),
    in_stage(tile(128, 320, 4, 2, 3)),
    ping_pong(tile(128, 192, 4, 2, 3)),
    ping_pong(tile(64, 320, 4, 2)),
    tile(128, 64, 8, 1),
    copying(in_stage(tile(128, 160, 6, 2, 4))),
    copying(in_stage(tile(128, 224, 5, 2, 4))),
    copying(ping_pong(swapped(tile(96, 64, 9, 2, 4)))),
    copying(ping_pong(swapped(tile(96, 128, 6, 2, 4)))),
    copying(ping_pong(swapped(tile(96, 192, 5, 2, 4)))),
    copying(swapped(tile(96, 128, 6, 1, 4))),
    copying(swapped(tile(112, 128, 6, 1))),
    copying(in_stage(swapped(tile(96, 256, 5, 1, 4)))),
    copying(ping_pong(swapped(tile(112, 128, 6, 2)))),
    in_stage(swapped(tile(112, 256, 4, 1, 3))),
    copying(ping_pong(swapped(tile(128, 64, 8, 1)))),
    copying(ping_pong(swapped(tile(128, 64, 8, 2)))),
    copying(swapped(tile(144, 128, 5, 1))),
    copying(ping_pong(swapped(tile(144, 128, 5, 1)))),
    copying(ping_pong(swapped(tile(144, 128, 5, 2)))),
    copying(in_stage(swapped(tile(144, 256, 4, 1, 4)))),
    copying(ping_pong(swapped(tile(160, 64, 7, 2, 3)))),
    copying(swapped(tile(160, 128, 5, 1, 4))),
    copying(ping_pong(swapped(tile(160, 128, 5, 1, 4)))),
    copying(ping_pong(swapped(tile(160, 128, 5, 2, 4)))),
    copying(in_stage(swapped(tile(160, 256, 4, 1, 4)))),
    copying(ping_pong(swapped(whole(tile(176, 128, 5, 1, 4))))),
    copying(swapped(tile(192, 128, 4, 1))),
    ping_pong(swapped(tile(192, 128, 4, 1))),
    in_stage(swapped(tile(192, 256, 4, 1))),
    copying(swapped(tile(208, 128, 4, 1))),
    copying(swapped(tile(224, 128, 4, 1, 4))),
    by_threads(tile(128, 64, 8, 1)),
    by_threads(tile(128, 128, 6, 2)),
    by_threads(ping_pong(tile(128, 128, 6, 2))),
    by_threads(ping_pong(swapped(tile(96, 64, 9, 2, 4)))),
    by_threads(swapped(tile(96, 128, 6, 2, 4))),
    by_threads(swapped(tile(160, 128, 5, 2, 4))),
    of_groups(ping_pong(tile(64, 256, 4, 1))),
    of_groups(tile(128, 256, 4, 1)),
    few_rows(8, 128, 12),
    few_rows(16, 64, 20),
    few_rows(16, 128, 10),
    few_rows(32, 64, 16),
    few_rows(32, 128, 10),
    few_rows(64, 64, 12),
    few_rows(64, 128, 8),
    few_rows(128, 64, 8),
    few_rows(128, 128, 5),
    few_rows(96, 128, 6, 2),
    few_rows(128, 128, 5, 2),
};

// `choose_gemm` silently passes over a tile that is not legal, so none may be listed.
static_assert(std::ranges::all_of(kTiles, device::legal));

using Maps = std::array<GemmMap, GemmConfig::kMostMaps>;

// The lists of maps that are shipped.
constexpr std::array kMaps = {Maps{}, Maps{GemmMap::AddRow}, Maps{GemmMap::AddRow, GemmMap::Gelu}};

// By GemmMap: the suffix in a variant's name, and the enumerator in its source.
constexpr std::array<std::array<std::string_view, 2>, 3> kMapWords = {
    {{"", "None"}, {"_row", "AddRow"}, {"_gelu", "Gelu"}}};

const std::array<std::string_view, 2>& words_of(GemmMap map) {
  return kMapWords.at(static_cast<std::size_t>(map));
}

const char* suffix_of(GemmStore store) {
  switch (store) {
    case GemmStore::Bulk:
      return "";
    case GemmStore::Add:
      return "_add";
    case GemmStore::Direct:
      return "_direct";
    case GemmStore::DirectAdd:
      return "_direct_add";
  }
  return "";
}

const char* store_name_of(GemmStore store) {
  switch (store) {
    case GemmStore::Bulk:
      return "Bulk";
    case GemmStore::Add:
      return "Add";
    case GemmStore::Direct:
      return "Direct";
    case GemmStore::DirectAdd:
      return "DirectAdd";
  }
  return "";
}

std::string tile_text(const GemmConfig& config) {
  return std::to_string(config.tile_m) + "x" + std::to_string(config.tile_n) + "x" +
         std::to_string(GemmConfig::kTileK);
}

std::string map_suffix_of(const GemmConfig& config) {
  std::string suffix;
  for (const GemmMap map : config.maps) suffix += words_of(map)[0];
  return suffix;
}

// Empty without maps, so that sources of such variants stay independent of maps.
std::string maps_text(const GemmConfig& config) {
  if (!config.has_maps()) return "";
  std::string text;
  for (const GemmMap map : config.maps) {
    text += (text.empty() ? "GemmMap::" : ", GemmMap::") + std::string(words_of(map)[1]);
  }
  return ", .maps = {" + text + "}";
}

std::string name_of(const GemmConfig& config) {
  const char* layout = config.layout == GemmLayout::NMajor ? "kn" : "nk";
  return std::string("gemm_") + word_of(config.in) + "_" + word_of(config.out) +
         (config.m_major ? "_km_" : "_") + layout + "_" + tile_text(config) + "_c" +
         std::to_string(config.cluster) + (config.ping_pong ? "_pingpong" : "") +
         (config.groups ? "_groups" : "") + (config.few_rows ? "_few_rows" : "") +
         (config.swapped ? "_swapped" : "") + (config.by_threads ? "_by_threads" : "") +
         suffix_of(config.store) + map_suffix_of(config);
}

const char* text(bool value) { return value ? "true" : "false"; }

std::string config_text(const GemmConfig& config) {
  const char* layout = config.layout == GemmLayout::NMajor ? "NMajor" : "KMajor";
  return std::string("{.tile_m = ") + std::to_string(config.tile_m) +
         ", .tile_n = " + std::to_string(config.tile_n) +
         ", .stages = " + std::to_string(config.stages) +
         ", .cluster = " + std::to_string(config.cluster) +
         ", .boxes = " + std::to_string(config.boxes) + ", .ping_pong = " + text(config.ping_pong) +
         ", .layout = GemmLayout::" + layout + ", .in = Element::" + enumerator_of(config.in) +
         ", .out = Element::" + enumerator_of(config.out) +
         ", .store = GemmStore::" + store_name_of(config.store) + ", .cuts = " + text(config.cuts) +
         ", .copies = " + text(config.copies) + ", .groups = " + text(config.groups) +
         ", .few_rows = " + text(config.few_rows) +
         (config.boxes_in_stage ? ", .boxes_in_stage = true" : "") +
         (config.m_major ? ", .m_major = true" : "") + (config.swapped ? ", .swapped = true" : "") +
         (config.by_threads ? ", .by_threads = true" : "") + maps_text(config) + "}";
}

bool same_tile(const GemmConfig& one, const GemmConfig& other) {
  return one.tile_m == other.tile_m && one.tile_n == other.tile_n && one.cluster == other.cluster &&
         one.ping_pong == other.ping_pong && one.swapped == other.swapped &&
         one.few_rows == other.few_rows && one.by_threads == other.by_threads;
}

// m_major ships with the tiles that weight gradients use, where A is stored as its transpose and B
// with rows along N.
bool has_m_major_for(const GemmConfig& config) {
  constexpr std::array kOfLarge = {0, 1, 3, 7};
  return config.layout == GemmLayout::NMajor && !config.has_maps() &&
         std::ranges::any_of(kOfLarge, [&](int at) {
           return same_tile(config, kTiles[static_cast<std::size_t>(at)]);
         });
}

// Maps ship with the tiles that large GEMMs use.
bool has_maps_for(const GemmConfig& config) {
  const bool is_known = std::ranges::any_of(
      kMaps, [&](const Maps& maps) { return std::ranges::equal(maps, config.maps); });
  return is_known && std::ranges::any_of(std::span(kTiles).first(4), [&](const GemmConfig& tile) {
           return same_tile(config, tile);
         });
}

}  // namespace

std::span<const GemmConfig> gemm_tiles() { return kTiles; }

bool ships(const GemmConfig& config) {
  if (!device::legal(config)) return false;
  if (config.out != Element::F32 && config.out != config.in) return false;
  // Addends are of bf16 alone.
  if (config.by_threads && config.in != Element::BF16) return false;
  if (config.groups || config.moves_by_threads()) return config.store == GemmStore::Bulk;
  if (config.m_major && !has_m_major_for(config)) return false;
  // With maps the result has the input type; a single added row may also have an f32 result.
  const bool is_row = config.maps[0] == GemmMap::AddRow && config.maps[1] == GemmMap::None;
  if (config.has_maps() && !has_maps_for(config)) return false;
  if (config.has_maps() && config.out != config.in && !is_row) return false;
  switch (config.store) {
    case GemmStore::Bulk:
      return true;
    case GemmStore::Add:
      return config.out == Element::F32 &&
             (same_tile(config, kTiles[0]) || same_tile(config, kTiles[1]));
    // Element-wise stores limit the speed, so one tile suffices.
    case GemmStore::Direct:
    case GemmStore::DirectAdd:
      return same_tile(config, kTiles[3]);
  }
  return false;
}

KernelVariant gemm_variant(const GemmConfig& config) {
  const std::string name = config.few_rows ? "few_rows" : "gemm";
  const std::string call = config.few_rows ? "gemm_of_few_rows" : "gemm";
  const std::string source = "#include \"exec/cuda/kernels/gemm/device/" + name +
                             ".cuh\"\n\n"
                             "using namespace harpe::device;\n\n"
                             "extern __shared__ __align__(1024) char memory[];\n\n"
                             "extern \"C\" __global__ void __launch_bounds__(" +
                             std::to_string(config.threads()) +
                             ", 1)\n"
                             "harpe_kernel(const __grid_constant__ GemmArgs args) {\n"
                             "  constexpr GemmConfig kConfig" +
                             config_text(config) +
                             ";\n"
                             "  " +
                             call +
                             "<kConfig>(args, memory);\n"
                             "}\n";
  return {.name = name_of(config),
          .family = "gemm",
          .tile = tile_text(config),
          .source = source,
          .threads = config.threads(),
          .shared_bytes = config.shared_bytes(),
          .uses_wgmma = true};
}

std::vector<GemmConfig> shipped_gemm_configs() {
  std::vector<GemmConfig> configs;
  for (const Element in : {Element::BF16, Element::F16}) {
    for (const Element out : {in, Element::F32}) {
      for (const GemmLayout layout : {GemmLayout::NMajor, GemmLayout::KMajor}) {
        for (const GemmStore store :
             {GemmStore::Bulk, GemmStore::Add, GemmStore::Direct, GemmStore::DirectAdd}) {
          for (const Maps& maps : kMaps) {
            for (GemmConfig config : kTiles) {
              config.in = in;
              config.out = out;
              config.layout = layout;
              config.store = store;
              config.cuts = config.cuts && device::in_bulk(store);
              std::ranges::copy(maps, config.maps);
              for (const bool m_major : {false, true}) {
                config.m_major = m_major;
                if (ships(config)) configs.push_back(config);
              }
            }
          }
        }
      }
    }
  }
  return configs;
}

std::vector<KernelVariant> gemm_variants() {
  std::vector<KernelVariant> variants;
  for (const GemmConfig& config : shipped_gemm_configs()) variants.push_back(gemm_variant(config));
  return variants;
}

}  // namespace harpe::cuda
