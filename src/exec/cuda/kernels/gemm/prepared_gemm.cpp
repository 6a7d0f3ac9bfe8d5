#include "exec/cuda/kernels/gemm/prepared_gemm.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "exec/cuda/kernels/gemm/device/few_rows_order.h"
#include "exec/cuda/kernels/gemm/device/gemm_order.h"
#include "exec/cuda/kernels/gemm/few_rows.h"
#include "exec/cuda/kernels/gemm/gemm_first.h"
#include "exec/cuda/kernels/gemm/gemm_variants.h"
#include "exec/cuda/runtime/tensor_map.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

using device::GemmArgs;
using device::GemmConfig;
using device::GemmKChunk;
using device::GemmLayout;
using device::GemmPanel;

struct Tables {
  std::vector<GemmPanel> panels;
  std::vector<GemmKChunk> k_chunks;
  std::int64_t rows = 0;  // few rows: rows of the tile that the panels so far occupy
  int waits = 0;          // K chunks and addends with a flag
  int addend_flags = 0;   // few rows: addends among them that threads load, not in data
};

// Rows of A that one stage loads for a panel of `rows` rows.
int rows_of_box(std::int64_t rows, const GemmConfig& config) {
  if (config.m_major) return config.tile_m;
  if (config.groups) return config.chunk_rows();
  return std::min(config.tile_m, device::box_rows(static_cast<int>(rows)));
}

// The same for the panel's last tile.
int rows_of_rest(std::int64_t rows, const GemmConfig& config) {
  const std::int64_t rest = rows % config.tile_m;
  return rows_of_box(rest == 0 ? rows : rest, config);
}

// Box rows of the two tensor maps of a panel's K chunks (GemmKChunk::map and rest).
struct BoxRows {
  int map;
  int rest;
};

// With pairs of thread blocks, the panel begins at row `begin` of the tile, and the first block has
// the first `each` rows. A map that its block does not use has rows too, since it cannot be empty.
BoxRows boxes_of(std::int64_t rows, const GemmConfig& config, std::int64_t begin,
                 std::int64_t each) {
  if (!config.few_rows || config.cluster == 1) {
    return {.map = rows_of_box(rows, config), .rest = rows_of_rest(rows, config)};
  }
  constexpr std::int64_t kLeast = GemmConfig::kRowAlign;
  const std::int64_t all = device::box_rows(static_cast<int>(rows));
  const std::int64_t first = std::clamp<std::int64_t>(each - begin, 0, all);
  return {.map = static_cast<int>(std::max(first, kLeast)),
          .rest = static_cast<int>(std::max(all - first, kLeast))};
}

Checked<device::TensorMap> map_a(const DriverApi& driver, const GemmSpec& spec,
                                 const GemmKChunkSpec& k_chunk, std::int64_t rows, int box_rows) {
  if (spec.m_major) {
    return encode_map(driver, {.address = k_chunk.a,
                               .element = spec.in,
                               .sizes = {rows, k_chunk.k_count},
                               .strides = {1, k_chunk.stride},
                               .box = {64, GemmConfig::kTileK}});
  }
  return encode_map(driver, {.address = k_chunk.a,
                             .element = spec.in,
                             .sizes = {k_chunk.k_count, rows},
                             .strides = {1, k_chunk.stride},
                             .box = {GemmConfig::kTileK, box_rows}});
}

// The tensor map of `k` rows of B, or of `k` columns of its transpose.
Checked<device::TensorMap> map_b(const DriverApi& driver, const GemmSpec& spec,
                                 const GemmConfig& config, DeviceAddress address, std::int64_t k) {
  const bool rows_of_k = spec.layout == GemmLayout::KMajor;
  const std::int64_t rows = rows_of_k ? spec.n : k;
  return encode_map(
      driver, {.address = address,
               .element = spec.in,
               .sizes = {rows_of_k ? k : spec.n, std::max(rows, spec.b_rows)},
               .strides = {1, spec.b_stride},
               .box = {rows_of_k ? GemmConfig::kTileK : config.box_columns(), config.b_box_rows()},
               .l2_bytes = config.few_rows ? 128 : 256});
}

Checked<device::TensorMap> map_addend(const DriverApi& driver, const GemmSpec& spec,
                                      const GemmAddendSpec& addend, std::int64_t rows,
                                      const GemmConfig& config) {
  return encode_map(driver, {.address = addend.address,
                             .element = spec.in,
                             .sizes = {spec.n, rows},
                             .strides = {1, addend.stride},
                             .box = {config.box_columns(), config.for_addends().b_box_rows()}});
}

Checked<Ok> add_addend(const DriverApi& driver, const GemmSpec& spec, const GemmAddendSpec& addend,
                       const GemmConfig& config, GemmPanel& panel, Tables& tables) {
  GemmKChunk to{};
  to.ready = addend.ready;
  to.is_addend = 1;
  if (config.moves_by_threads()) {
    to.address = reinterpret_cast<void*>(addend.address);
    to.stride = addend.stride;
    to.is_in_data = addend.is_in_data ? 1 : 0;
    ++panel.addends;
  } else {
    HP_TRY(to.map, map_addend(driver, spec, addend, panel.rows, config));
    to.k_count = config.tile_m * config.cluster;
    to.a_bytes = config.a_bytes();
    panel.k_blocks += device::ceil_div(to.k_count, GemmConfig::kTileK);
  }
  if (to.ready.flag != nullptr) {
    ++tables.waits;
    if (to.is_in_data == 0) ++tables.addend_flags;
  }
  tables.k_chunks.push_back(to);
  return Ok{};
}

Checked<Ok> add_panel(const DriverApi& driver, const GemmSpec& spec, const GemmPanelSpec& from,
                      const GemmConfig& config, Tables& tables) {
  GemmPanel panel{};
  panel.c_address = reinterpret_cast<void*>(from.c);
  panel.c_stride = from.c_stride;
  panel.done = reinterpret_cast<std::uint32_t*>(from.done);
  panel.rows = static_cast<std::int32_t>(from.rows);
  panel.first_k_chunk = static_cast<std::int32_t>(tables.k_chunks.size());
  panel.b_first = static_cast<std::int32_t>(from.b_first);
  panel.rows_of = from.rows_of;
  panel.used = from.used;
  panel.is_in_data = from.is_in_data ? 1 : 0;
  if (!config.stores_by_consumers()) {
    HP_TRY(
        panel.c,
        encode_map(driver, {.address = from.c,
                            .element = spec.out,
                            .sizes = {spec.n, from.rows},
                            .strides = {1, from.c_stride},
                            .box = {config.store_columns(),
                                    config.groups ? config.chunk_rows() : config.store_rows()}}));
  }
  const BoxRows boxes = boxes_of(from.rows, config, tables.rows, rows_each(spec, config));
  if (from.rows_of < 0) tables.rows += device::box_rows(panel.rows);
  for (const GemmKChunkSpec& k_chunk : from.k_chunks) {
    GemmKChunk to{};
    HP_TRY(to.map, map_a(driver, spec, k_chunk, from.rows, boxes.map));
    HP_TRY(to.rest, map_a(driver, spec, k_chunk, from.rows, boxes.rest));
    to.ready = k_chunk.ready;
    if (k_chunk.b != 0) {
      HP_TRY(to.b, map_b(driver, spec, config, k_chunk.b, k_chunk.k_count));
      to.has_b = 1;
    } else {
      to.k_begin = static_cast<std::int32_t>(k_chunk.k_begin);
    }
    to.k_count = static_cast<std::int32_t>(k_chunk.k_count);
    to.a_bytes = boxes.map * GemmConfig::kTileK * 2;
    to.rest_bytes = boxes.rest * GemmConfig::kTileK * 2;
    panel.k_blocks += device::ceil_div(to.k_count, GemmConfig::kTileK);
    if (to.ready.flag != nullptr) ++tables.waits;
    tables.k_chunks.push_back(to);
  }
  panel.products = panel.k_blocks;
  panel.first_addend = static_cast<std::int32_t>(tables.k_chunks.size());
  for (const GemmAddendSpec& addend : from.addends) {
    HP_REQUIRE_OK(add_addend(driver, spec, addend, config, panel, tables));
  }
  tables.panels.push_back(panel);
  return Ok{};
}

// Sets each panel's first cluster tile; returns the number of all cluster tiles.
int count_tiles(std::vector<GemmPanel>& panels, const GemmConfig& config, int group, int columns) {
  int tiles = 0;
  for (GemmPanel& panel : panels) {
    panel.first_tile = tiles;
    if (config.few_rows) return columns;
    if (panel.rows_of >= 0) continue;
    const int rows = device::ceil_div(panel.rows, config.tile_m * config.cluster);
    panel.last_band = device::divisor((rows - 1) % group + 1);
    tiles += rows * columns;
  }
  return tiles;
}

// Puts both tables into the arguments if they are short, else into memory of the GPU.
Checked<Ok> place_tables(const Device& device, const GemmSpec& spec, const Tables& tables,
                         GemmArgs& args, GemmMemory& memory) {
  args.panel_count = static_cast<std::int32_t>(tables.panels.size());
  args.row_panels = row_panels(spec);
  args.has_addends = has_addends(spec) ? 1 : 0;
  args.waits = tables.waits;
  args.addend_flags = tables.addend_flags;
  if (fit_in_arguments(spec)) {
    std::ranges::copy(tables.panels, args.few_panels);
    std::ranges::copy(tables.k_chunks, args.few_k_chunks);
    return Ok{};
  }
  HP_TRY(memory.panels, DeviceMemory::copy_of(device, std::as_bytes(std::span(tables.panels))));
  HP_TRY(memory.k_chunks, DeviceMemory::copy_of(device, std::as_bytes(std::span(tables.k_chunks))));
  args.panels = reinterpret_cast<const GemmPanel*>(memory.panels->address());
  args.k_chunks = reinterpret_cast<const GemmKChunk*>(memory.k_chunks->address());
  return Ok{};
}

// Memory for the sums of cut tiles and for their tickets, which start at zero.
Checked<Ok> place_sums(const Device& device, const GemmSpec& spec, const GemmConfig& config,
                       GemmArgs& args, std::shared_ptr<StreamSums> sums, GemmMemory& memory) {
  const std::int64_t cut = config.few_rows ? args.tiles : args.tiles - args.full_tiles;
  if (cut == 0) return Ok{};
  const std::int64_t tile_bytes = std::int64_t{4} * config.tile_m * config.tile_n * config.cluster;
  const bool is_own = sums == nullptr;
  if (is_own) sums = std::make_shared<StreamSums>();
  if (config.few_rows) {
    sums->reserve_parts(args.parts.number * tile_bytes);
    if (adds_to_sums(spec)) sums->reserve(args.tiles * tile_bytes);
  } else {
    sums->reserve(cut * args.parts.number * tile_bytes);
  }
  if (is_own) HP_REQUIRE_OK(sums->allocate(device));
  memory.sums = std::move(sums);
  if (config.few_rows) return Ok{};
  HP_TRY(memory.tickets,
         DeviceMemory::zeros(device, 2 * cut * config.cluster * config.arrivals_per_tile()));
  args.tickets = reinterpret_cast<std::uint32_t*>(memory.tickets->address());
  return Ok{};
}

// The identity in bf16, as large as the rows of a cluster's tile.
Checked<Ok> place_identity(const Device& device, const GemmSpec& spec, const GemmConfig& config,
                           GemmArgs& args, GemmMemory& memory) {
  constexpr std::uint16_t kOne = 0x3f80;
  if (!has_addends(spec) || config.moves_by_threads()) return Ok{};
  const int size = config.tile_m * config.cluster;
  std::vector<std::uint16_t> values(static_cast<std::size_t>(size) * size);
  for (int i = 0; i < size; ++i) values[static_cast<std::size_t>(i) * (size + 1)] = kOne;
  HP_TRY(memory.identity, DeviceMemory::copy_of(device, std::as_bytes(std::span(values))));
  HP_TRY(args.identity, encode_map(device.driver(), {.address = memory.identity->address(),
                                                     .element = spec.in,
                                                     .sizes = {size, size},
                                                     .strides = {1, size},
                                                     .box = {GemmConfig::kTileK, config.tile_m}}));
  return Ok{};
}

// Counters of fused stores, zero before and after each launch, and the count at which each store is
// complete.
Checked<Ok> place_fused_stores(const Device& device, const GemmSpec& spec, const GemmChoice& choice,
                               Tables& tables, GemmMemory& memory) {
  if (spec.fused_stores.empty()) return Ok{};
  const auto count = static_cast<std::int64_t>(spec.fused_stores.size());
  HP_TRY(memory.fused_stores, DeviceMemory::zeros(device, count));
  std::vector<std::uint32_t> blocks(spec.fused_stores.size());
  const auto of = [](const GemmPanelSpec& panel) {
    return static_cast<std::size_t>(panel.fused_store);
  };
  for (const GemmPanelSpec& panel : spec.panels) {
    if (panel.fused_store >= 0) blocks[of(panel)] += arrivals(panel, spec.n, choice);
  }
  for (std::size_t i = 0; i < spec.panels.size(); ++i) {
    const GemmPanelSpec& from = spec.panels[i];
    if (from.fused_store < 0) continue;
    GemmPanel& panel = tables.panels[i];
    panel.done =
        reinterpret_cast<std::uint32_t*>(memory.fused_stores->address()) + from.fused_store;
    panel.arrivals = blocks[of(from)];
    panel.raise = spec.fused_stores[of(from)];
  }
  return Ok{};
}

Checked<Ok> place_copies(const Device& device, const GemmSpec& spec, GemmArgs& args,
                         GemmMemory& memory) {
  args.copy_count = static_cast<std::int32_t>(spec.copies.size());
  args.copy_blocks = spec.copy_blocks;
  if (spec.copies.empty()) return Ok{};
  if (has_copies_in_arguments(spec)) {
    std::ranges::copy(spec.copies, args.few_copies);
    return Ok{};
  }
  HP_TRY(memory.jobs, DeviceMemory::copy_of(device, std::as_bytes(std::span(spec.copies))));
  args.copies = reinterpret_cast<const device::CopyJob*>(memory.jobs->address());
  return Ok{};
}

// All consumers and all copies end the execution.
void place_bounds(const GemmSpec& spec, const GemmConfig& config, int grid, GemmArgs& args) {
  args.bounds = spec.bounds;
  if (spec.bounds.ended == nullptr) return;
  HP_CHECK(!config.groups && spec.wait.poison != nullptr,
           "launch plans have other kernels stand between executions");
  const int alone = args.joined == GemmArgs::kNeverJoined ? spec.copy_blocks : 0;
  args.bounds.arrivals =
      static_cast<std::uint32_t>((grid - alone) * config.consumers() + spec.copy_blocks);
  args.wait.ahead = 1;
  if (config.few_rows) args.waits += spec.bounds.wait_count;
}

}  // namespace

static_assert(std::size(GemmArgs{}.map_rows) == GemmConfig::kMostMaps);

Checked<PreparedGemm> PreparedGemm::make(KernelLibrary& library, const GemmSpec& spec,
                                         const GemmChoice& choice, std::optional<int> blocks,
                                         std::shared_ptr<StreamSums> sums) {
  const int at_once = blocks.value_or(library.device().facts().multiprocessors);
  HP_REQUIRE_OK(check(spec, at_once));
  if (device::in_bulk(choice.config.store) && !stores_in_bulk(spec)) {
    return make_diag(DiagCode::G041,
                     {{"what", "rows of C"}, {"bytes", spec.n * device::bytes_of(spec.out)}});
  }
  const GemmConfig& config = choice.config;
  HP_CHECK(config.groups == has_groups(spec), "variants of groups take nothing else");
  const Device& device = library.device();
  if (auto current = device.make_current(); !current.ok()) return to_diag(current.error());
  HP_TRY(const LoadedKernel* kernel, library.load(gemm_variant(config)));
  PreparedGemm gemm(library, *kernel, choice);
  gemm.keeps_sums_ = adds_to_sums(spec);
  Tables tables;
  for (const GemmPanelSpec& panel : spec.panels) {
    HP_REQUIRE_OK(add_panel(device.driver(), spec, panel, config, tables));
  }
  HP_REQUIRE_OK(place_fused_stores(device, spec, choice, tables, gemm.memory_));
  GemmArgs& args = gemm.args_;
  HP_TRY(args.b, map_b(device.driver(), spec, config, spec.b, spec.k));
  args.wait = spec.wait;
  args.n = static_cast<std::int32_t>(spec.n);
  args.n_tiles = device::ceil_div(args.n, config.tile_n);
  args.tiles = count_tiles(tables.panels, config, choice.group, args.n_tiles);
  args.full_tiles = choice.full_tiles;
  args.parts = device::divisor(choice.parts);
  args.tile_blocks = device::divisor(tables.panels.front().k_blocks);
  args.stream_blocks = device::divisor(choice.stream_blocks);
  args.rows_each = static_cast<std::int32_t>(rows_each(spec, config));
  args.group = device::divisor(choice.group);
  args.band = device::divisor(choice.group * args.n_tiles);
  args.b_is_fixed = spec.b_is_fixed ? 1 : 0;
  for (std::size_t i = 0; i < spec.maps.size(); ++i) {
    args.map_rows[i] = reinterpret_cast<const void*>(spec.panels.front().map_operands[i].address);
  }
  HP_REQUIRE_OK(place_tables(device, spec, tables, args, gemm.memory_));
  HP_REQUIRE_OK(place_sums(device, spec, config, args, std::move(sums), gemm.memory_));
  HP_REQUIRE_OK(place_identity(device, spec, config, args, gemm.memory_));
  HP_REQUIRE_OK(place_copies(device, spec, args, gemm.memory_));
  const int units = config.few_rows ? choice.parts
                                    : device::unit_count(args.tiles, args.full_tiles, choice.parts);
  // Each stream has a cluster, even if not all clusters run at once.
  const int clusters = config.few_rows ? units : (at_once - spec.copy_blocks) / config.cluster;
  const int cluster = config.few_rows ? cluster_of(choice) : config.cluster;
  const int grid = std::min(units, clusters) * cluster + spec.copy_blocks;
  // On a GPU of more SMs than the launch plan is for, the other blocks take those tickets at once.
  const bool joins = choice.joined > 0 && choice.joined >= clusters;
  args.joined = joins ? choice.joined : GemmArgs::kNeverJoined;
  args.last_clocks = last_clocks(spec, config, clusters);
  args.b_apart = config.few_rows ? clocks_between_loads(spec, config, grid - spec.copy_blocks) : 0;
  place_bounds(spec, config, grid, args);
  place_first(config, grid, args);
  gemm.shape_ = {.grid = {static_cast<std::uint32_t>(grid), 1, 1},
                 .cluster = {static_cast<std::uint32_t>(cluster), 1, 1},
                 .begins_early = true};
  return gemm;
}

Result<Ok, CudaError> PreparedGemm::launch(CUstream stream) const {
  device::GemmArgs args = args_;
  if (memory_.sums != nullptr) {
    const bool few_rows = choice_.config.few_rows;
    const StreamSums& sums = *memory_.sums;
    args.partials = reinterpret_cast<float*>(few_rows ? sums.parts() : sums.address());
    if (few_rows && keeps_sums_) args.kept = reinterpret_cast<float*>(sums.address());
  }
  return cuda::launch(library_->device().driver(), *kernel_, shape_, stream, args);
}

}  // namespace harpe::cuda
