#include "exec/cuda/kernels/gemm/gemm_first.h"

#include <algorithm>

#include "exec/cuda/device/shares.h"
#include "exec/cuda/kernels/gemm/device/gemm_order.h"

namespace harpe::cuda {
namespace {

using device::GemmArgs;
using device::GemmConfig;
using device::GemmFirst;
using device::GemmKChunk;
using device::GemmPanel;

int panel_with(const GemmArgs& args, int tile) {
  int panel = 0;
  while (panel + 1 < args.panel_count && tile >= args.few_panels[panel + 1].first_tile) ++panel;
  return panel;
}

GemmFirst::Box box_of(const GemmConfig& config, int rows) {
  if (rows <= 0) return GemmFirst::None;
  return rows < config.tile_m ? GemmFirst::Rest : GemmFirst::Whole;
}

GemmFirst first_of(const GemmConfig& config, const GemmArgs& args, int block) {
  const int index = block / config.cluster - args.copy_blocks / config.cluster;
  const device::GemmUnit unit = device::unit_at(index, args.full_tiles, args.parts);
  if (index < 0 || unit.tile >= args.tiles) return {};
  const GemmPanel& panel = args.few_panels[panel_with(args, unit.tile)];
  const int rows = device::ceil_div(panel.rows, config.tile_m * config.cluster);
  const device::TilePlace place = device::place_of(
      unit.tile - panel.first_tile, args.group.number, args.band,
      [&](int row) { return rows - row < args.group.number ? panel.last_band : args.group; });
  const auto share = [&](int part) {
    return unit.parts == 1 ? part * panel.k_blocks
                           : device::share_begin(panel.k_blocks, part, args.parts);
  };
  int k_chunk = panel.first_k_chunk;
  int begin = share(unit.part);
  const auto blocks_of = [&] {
    return device::ceil_div(args.few_k_chunks[k_chunk].k_count, GemmConfig::kTileK);
  };
  for (; begin >= blocks_of(); ++k_chunk) begin -= blocks_of();
  const GemmKChunk& from = args.few_k_chunks[k_chunk];
  if (from.is_addend != 0 || from.ready.flag != nullptr) return {};
  const int of_unit = share(unit.part + 1) - share(unit.part);
  const int row = place.row * config.cluster + block % config.cluster;
  const GemmFirst::Box box = box_of(config, panel.rows - row * config.tile_m);
  const int of_a = box == GemmFirst::Rest ? from.rest_bytes : from.a_bytes;
  GemmFirst first{};
  first.row = static_cast<std::uint16_t>(row);
  first.column = static_cast<std::uint16_t>(place.column);
  first.a_block = static_cast<std::uint16_t>(begin);
  first.b_block = static_cast<std::uint16_t>(begin + from.k_begin / GemmConfig::kTileK);
  first.bytes = static_cast<std::uint32_t>(config.b_bytes() + (box == GemmFirst::None ? 0 : of_a));
  first.blocks = static_cast<std::uint8_t>(std::min({config.stages, of_unit, blocks_of() - begin}));
  first.k_chunk = static_cast<std::uint8_t>(k_chunk);
  first.box = box;
  first.has_b = from.has_b != 0 ? 1 : 0;
  first.b_is_ahead = args.b_is_fixed != 0 && args.waits == 0 ? 1 : 0;
  return first;
}

}  // namespace

void place_first(const GemmConfig& config, int grid, GemmArgs& args) {
  if (config.groups || config.few_rows || args.panels != nullptr) return;
  for (int block = 0; block < std::min(grid, GemmArgs::kMostFirst); ++block) {
    args.first[block] = first_of(config, args, block);
  }
}

}  // namespace harpe::cuda
