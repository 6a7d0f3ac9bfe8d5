#pragma once

#include "exec/cuda/device/types.h"
#include "exec/cuda/kernels/gemm/device/few_rows_order.h"

namespace harpe::device {

// What happens to finished values of C.
enum class GemmStore : std::uint8_t {
  Bulk,    // the copy engine writes boxes; n and strides of C are multiples of 16 bytes, since it
           // writes no less
  Add,     // the same adds boxes to f32 values
  Direct,  // threads write elements of any shape
  DirectAdd,  // threads add elements
};

HP_SHARED_CODE bool in_bulk(GemmStore store) {
  return store == GemmStore::Bulk || store == GemmStore::Add;
}

HP_SHARED_CODE bool adds(GemmStore store) {
  return store == GemmStore::Add || store == GemmStore::DirectAdd;
}

// What sums go through before they are rounded and stored.
enum class GemmMap : std::uint8_t {
  None,
  AddRow,  // of each column's value in one row, of the type of A
  Gelu,
};

// One variant of the kernels. Two consumer warpgroups multiply: both halves of one tile's rows, or,
// with `ping_pong`, every second tile each, so that one stores while the other multiplies.
// With `few_rows` (few_rows.cuh) one cluster has all rows of C, and a consumer 64 of its columns.
struct GemmConfig {
  int tile_m = 128;
  int tile_n = 256;
  int stages = 4;
  int cluster = 2;  // blocks along M that load B together
  int boxes = 2;    // of C that a consumer may have staged
  bool ping_pong = false;
  GemmLayout layout = GemmLayout::NMajor;
  Element in = Element::BF16;
  Element out = Element::BF16;
  GemmStore store = GemmStore::Bulk;
  bool cuts = false;    // tiles may be cut along K
  bool copies = false;  // blocks may be given to copying
  bool groups = false;  // panels have B's of their own, and rows that are not used
  bool few_rows = false;
  bool m_major = false;  // A is stored as its transpose: rows of memory lie along M
  static constexpr int kMostMaps = 2;
  GemmMap maps[kMostMaps] = {};  // in this order; behind the last there is None; none of few rows

  static constexpr int kTileK = 64;
  static constexpr int kConsumers = 2;
  static constexpr int kThreads = 128 * (1 + kConsumers);

  HP_SHARED_CODE int consumers() const { return few_rows ? tile_n / 64 : kConsumers; }
  HP_SHARED_CODE int threads() const { return 128 * (1 + consumers()); }

  // Rows of a consumer's block, and products of 64 rows it is made of.
  HP_SHARED_CODE int block_m() const { return ping_pong ? tile_m : tile_m / kConsumers; }
  HP_SHARED_CODE int slices() const { return block_m() / 64; }
  // Columns of the first product of a slice, whole boxes of B; a second one has the others.
  HP_SHARED_CODE int product_columns() const { return tile_n <= 256 ? tile_n : 192; }
  // Whether blocks of a cluster share out the rows of B's boxes, as these cannot be dealt out.
  HP_SHARED_CODE bool shares_b_rows() const {
    return cluster > 1 && layout == GemmLayout::NMajor && tile_n % (cluster * 64) != 0;
  }
  // The same with B's rows along N: addends lie so, as C does, however B lies.
  HP_SHARED_CODE GemmConfig for_addends() const {
    GemmConfig config = *this;
    config.layout = GemmLayout::NMajor;
    return config;
  }
  // Rows of a box of B.
  HP_SHARED_CODE int b_box_rows() const {
    if (layout == GemmLayout::KMajor) return tile_n / cluster;
    return shares_b_rows() ? kTileK / cluster : kTileK;
  }
  HP_SHARED_CODE int a_bytes() const { return tile_m * kTileK * 2; }
  HP_SHARED_CODE int b_bytes() const { return tile_n * kTileK * 2; }
  HP_SHARED_CODE int stage_bytes() const { return a_bytes() + b_bytes(); }
  // Columns of a staged box of C: rows of 128 bytes.
  HP_SHARED_CODE int store_columns() const { return 128 / bytes_of(out); }
  // As products with the identity, which lies along K. Beside maps a second way of multiplying
  // takes more registers than there are.
  HP_SHARED_CODE bool takes_addends() const {
    return !groups && !m_major && (layout == GemmLayout::NMajor || !has_maps());
  }
  HP_SHARED_CODE bool has_maps() const { return maps[0] != GemmMap::None; }
  HP_SHARED_CODE int staged_boxes() const { return in_bulk(store) ? boxes : 0; }
  static constexpr int kBoxBytes = 64 * 128;

  // Of groups: how many chunks of rows a tile has, each of one panel, and panels at most.
  static constexpr int kChunks = 4;
  static constexpr int kMostPanels = 512;
  HP_SHARED_CODE int chunk_rows() const { return tile_m / kChunks; }
  HP_SHARED_CODE int group_bytes() const { return groups ? kMostPanels * 4 : 0; }

  // Of few rows: panels begin at multiples of 8. Sums leave through shared memory, so many rows at
  // a time, of 64 columns in f32 and 16 bytes that keep them in different banks.
  static constexpr int kRowAlign = 8;
  static constexpr int kStagedRowBytes = 64 * 4 + 16;
  HP_SHARED_CODE int staged_rows() const { return device::staged_rows(tile_m); }
  // Stages that are filled together and emptied together: up to 64 rows a block multiplies a stage
  // in half the time that waiting for one takes, and giving it back.
  HP_SHARED_CODE int slot_stages() const { return few_rows && tile_m <= 64 ? 2 : 1; }
  HP_SHARED_CODE int slots() const { return stages / slot_stages(); }
  // Whether threads that multiply need more registers than the others.
  HP_SHARED_CODE bool deals_registers() const { return tile_m >= 32 && consumers() == kConsumers; }
  // Eight rows of a consumer's columns, in f32, and how many of them other blocks may send it.
  static constexpr int kStripBytes = kRowAlign * 64 * 4;
  HP_SHARED_CODE int inbox_strips() const {
    const int least = tile_n == 64 ? 7 : 4;
    return tile_m / kRowAlign > least ? tile_m / kRowAlign : least;
  }
  HP_SHARED_CODE int staged_bytes() const {
    if (!few_rows) return staged_boxes() * kBoxBytes;
    const int rows = staged_rows() * kStagedRowBytes;
    const int inbox = inbox_strips() * kStripBytes;
    return rows > inbox ? rows : inbox;
  }

  // Barriers, then what needs 1,024 bytes of alignment, then how many rows panels of groups have.
  static constexpr int kBarrierBytes = 1024;
  HP_SHARED_CODE int shared_bytes() const {
    return kBarrierBytes + stages * stage_bytes() + consumers() * staged_bytes() + group_bytes();
  }
  // Registers of a thread; together what the block has at its start, 168 each.
  HP_SHARED_CODE int mover_registers() const { return copies ? 64 : 56; }
  HP_SHARED_CODE int consumer_registers() const { return copies ? 216 : 224; }
  // How often GemmPanel::done grows per tile of C.
  HP_SHARED_CODE int arrivals_per_tile() const { return ping_pong ? 1 : consumers(); }
};

HP_SHARED_CODE bool legal_few_rows(const GemmConfig& config) {
  return (config.tile_m == 8 || config.tile_m == 16 || config.tile_m == 32 || config.tile_m == 64 ||
          config.tile_m == 96 || config.tile_m == 128) &&
         (config.cluster == 1 || config.cluster == 2) &&
         config.tile_n % (config.cluster * 64) == 0 && !config.ping_pong && !config.groups &&
         config.cuts && config.store == GemmStore::Bulk && !config.has_maps() &&
         config.slots() >= 2 && config.stages % config.slot_stages() == 0 &&
         config.shared_bytes() <= kSharedMemoryLimit;
}

// The rules a variant keeps. A thread that multiplies holds tile_n / 2 sums for each slice of its
// block, 192 at most.
HP_SHARED_CODE bool legal(const GemmConfig& config) {
  if (config.few_rows) return legal_few_rows(config) && !config.m_major;
  const int block = config.block_m();
  return block % 64 == 0 && (block / 64) * config.tile_n <= 384 && config.tile_n % 64 == 0 &&
         config.b_box_rows() <= 256 && (config.cluster == 1 || config.cluster == 2) &&
         config.stages >= 2 && config.boxes >= 2 &&
         (!adds(config.store) || config.out == Element::F32) &&
         (!config.has_maps() || (!adds(config.store) && !config.groups)) &&
         (!config.groups || (config.store == GemmStore::Bulk && !config.cuts && !config.copies)) &&
         (!config.m_major || (config.tile_m % 64 == 0 && !config.groups)) &&
         config.shared_bytes() <= kSharedMemoryLimit;
}

}  // namespace harpe::device
