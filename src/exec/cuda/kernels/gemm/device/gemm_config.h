#pragma once

#include "exec/cuda/device/types.h"
#include "exec/cuda/kernels/gemm/device/few_rows_order.h"

namespace harpe::device {

// How finished values of C are stored.
enum class GemmStore : std::uint8_t {
  Bulk,       // TMA stores boxes; the address, rows and stride of C are multiples of 16 bytes
  Add,        // TMA adds boxes to f32 values
  Direct,     // threads store elements; no requirement on C
  DirectAdd,  // threads add elements atomically
};

HP_SHARED_CODE bool in_bulk(GemmStore store) {
  return store == GemmStore::Bulk || store == GemmStore::Add;
}

HP_SHARED_CODE bool adds(GemmStore store) {
  return store == GemmStore::Add || store == GemmStore::DirectAdd;
}

// A function that is applied to the sums before they are rounded and stored.
enum class GemmMap : std::uint8_t {
  None,
  AddRow,  // adds one row of n values, in the type of A, to every row of C
  Gelu,
};

// One kernel variant. Two consumer warpgroups each compute half of a tile's rows, or columns if
// `swapped`. With `ping_pong` they alternate tiles, so that one stores while the other multiplies.
// With `few_rows` (few_rows.cuh) one cluster has all rows of C, and a consumer 64 of its columns.
struct GemmConfig {
  int tile_m = 128;
  int tile_n = 256;
  int stages = 4;
  int cluster = 2;  // thread blocks along M that load B by multicast
  int boxes = 2;    // staged boxes of C per consumer
  bool ping_pong = false;
  GemmLayout layout = GemmLayout::NMajor;
  Element in = Element::BF16;
  Element out = Element::BF16;
  GemmStore store = GemmStore::Bulk;
  bool cuts = false;    // tiles may be cut along K; they are then stored in bulk
  bool copies = false;  // some thread blocks may make fused copies
  bool groups = false;  // grouped GEMM: each group has its own B and a number of rows in use
  bool few_rows = false;
  bool boxes_in_stage = false;  // boxes of C lie in the stage of the tile's last K block
  bool m_major = false;         // A is stored as its transpose: rows of memory lie along M
  bool swapped = false;         // the rows of a wgmma are columns of C, so tile_m is free
  bool by_threads = false;      // consumers store C and add up what other ranks store here
  static constexpr int kMostMaps = 2;
  GemmMap maps[kMostMaps] = {};  // applied in this order, None after the last; none with few_rows

  static constexpr int kTileK = 64;
  static constexpr int kConsumers = 2;
  static constexpr int kThreads = 128 * (1 + kConsumers);

  HP_SHARED_CODE int consumers() const { return few_rows ? tile_n / 64 : kConsumers; }
  HP_SHARED_CODE int threads() const { return 128 * (1 + consumers()); }

  // Rows and columns that a consumer computes, and its slices: one wgmma covers 64 rows, or, if
  // `swapped`, 64 columns.
  HP_SHARED_CODE int block_m() const { return ping_pong || swapped ? tile_m : tile_m / kConsumers; }
  HP_SHARED_CODE int block_n() const {
    return !ping_pong && swapped ? tile_n / kConsumers : tile_n;
  }
  HP_SHARED_CODE int slices() const { return (swapped ? block_n() : block_m()) / 64; }
  // Accumulators that a thread has of a slice.
  HP_SHARED_CODE int slice_sums() const { return (swapped ? tile_m : tile_n) / 2; }
  // Columns of the first wgmma of a slice, a multiple of 64; a second wgmma covers the rest.
  HP_SHARED_CODE int wgmma_columns() const { return slice_sums() <= 128 ? 2 * slice_sums() : 192; }
  // Columns of a box of NMajor B, and of C in 16 bits: as many as divide the tile's.
  HP_SHARED_CODE int box_columns() const { return tile_n % 64 == 0 ? 64 : 32; }
  // Whether each block of a cluster loads some rows of every box of B. It does where the number of
  // boxes is not a multiple of the cluster; otherwise it loads whole boxes.
  HP_SHARED_CODE bool shares_b_rows() const {
    return cluster > 1 && layout == GemmLayout::NMajor && tile_n % (cluster * box_columns()) != 0;
  }
  // This variant with the layout of addends: like C they have rows along N, whatever B's layout.
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
  // A staged box of C: rows of 128 bytes, or of 64.
  HP_SHARED_CODE int store_columns() const { return out == Element::F32 ? 32 : box_columns(); }
  HP_SHARED_CODE int store_rows() const {
    if (!swapped || tile_m % 64 == 0) return 64;
    if (tile_m % 32 == 0) return 32;
    if (tile_m % 48 == 0) return 48;
    return tile_m == 176 ? 16 : tile_m / 2;  // boxes of 88 rows leave no memory for five stages
  }
  HP_SHARED_CODE int store_row_bytes() const { return store_columns() * bytes_of(out); }
  HP_SHARED_CODE int box_bytes() const { return store_rows() * store_row_bytes(); }
  // Clocks from box to box of a thread block at which 132 of them fill NVLink. A box of 64 rows of
  // 128 bytes takes 5,000 of them.
  HP_SHARED_CODE int clocks_of_full_link() const { return 5000 * box_bytes() / 8192; }
  // Clocks from box to box at which the boxes of a tile leave during most of the next one.
  HP_SHARED_CODE int clocks_of_next_tile(int k_blocks) const {
    return 110 * k_blocks * box_bytes() / 8192;
  }
  // A slice's boxes: those of the same rows follow each other.
  HP_SHARED_CODE int boxes_across() const { return (swapped ? 64 : tile_n) / store_columns(); }
  HP_SHARED_CODE int boxes_of_slice() const {
    return boxes_across() * (swapped ? tile_m / store_rows() : 1);
  }
  // The identity that multiplies addends lies along K, so m_major variants take none. With KMajor
  // B addends need a second multiply path, for which variants with maps lack registers.
  HP_SHARED_CODE bool takes_addends() const {
    return !groups && !m_major && (layout == GemmLayout::NMajor || !has_maps());
  }
  HP_SHARED_CODE bool has_maps() const { return maps[0] != GemmMap::None; }
  // Whether threads store C and load addends, and not TMA; at most so many panels if `by_threads`.
  HP_SHARED_CODE bool moves_by_threads() const { return few_rows || by_threads; }
  static constexpr int kMostNotedPanels = 10;
  // Whether consumers store C, and not the store warps.
  HP_SHARED_CODE bool stores_by_consumers() const { return moves_by_threads() || !in_bulk(store); }
  HP_SHARED_CODE int staged_boxes() const { return in_bulk(store) ? boxes : 0; }

  // Grouped GEMM: a tile has kChunks chunks of rows, each from one panel.
  static constexpr int kChunks = 4;
  static constexpr int kMostPanels = 512;
  HP_SHARED_CODE int chunk_rows() const { return tile_m / kChunks; }
  HP_SHARED_CODE int group_bytes() const { return groups ? kMostPanels * 4 : 0; }

  // Few rows: panels begin at multiples of 8 rows. Sums are staged in shared memory, staged_rows()
  // rows at a time, each of 64 f32 columns and 16 bytes of padding against bank conflicts.
  static constexpr int kRowAlign = 8;
  static constexpr int kStagedRowBytes = 64 * 4 + 16;
  HP_SHARED_CODE int staged_rows() const { return device::staged_rows(tile_m); }
  // Stages that are filled and released together. With up to 64 rows, multiplying one stage takes
  // half as long as waiting for it and releasing it.
  HP_SHARED_CODE int slot_stages() const { return few_rows && tile_m <= 64 ? 2 : 1; }
  HP_SHARED_CODE int slots() const { return stages / slot_stages(); }
  // Whether consumers need more registers than the producer warpgroup (setmaxnreg).
  HP_SHARED_CODE bool deals_registers() const { return tile_m >= 32 && consumers() == kConsumers; }
  // A strip is eight rows of a consumer's 64 columns in f32. inbox_strips: the most that the other
  // thread blocks of the stream may send to one consumer.
  static constexpr int kStripBytes = kRowAlign * 64 * 4;
  HP_SHARED_CODE int inbox_strips() const {
    const int least = tile_n == 64 ? 7 : 4;
    return tile_m / kRowAlign > least ? tile_m / kRowAlign : least;
  }
  HP_SHARED_CODE int staged_bytes() const {
    if (!few_rows) return boxes_in_stage ? 0 : staged_boxes() * box_bytes();
    const int rows = staged_rows() * kStagedRowBytes;
    const int inbox = inbox_strips() * kStripBytes;
    return rows > inbox ? rows : inbox;
  }

  // Barriers, then stages and boxes aligned to 1,024 bytes, then the groups' row counts.
  static constexpr int kBarrierBytes = 1024;
  HP_SHARED_CODE int shared_bytes() const {
    return kBarrierBytes + stages * stage_bytes() + consumers() * staged_bytes() + group_bytes();
  }
  // Registers per thread. Their sum over the block is that of the launch, 168 per thread.
  HP_SHARED_CODE int mover_registers() const { return copies ? 64 : 56; }
  HP_SHARED_CODE int consumer_registers() const { return copies ? 216 : 224; }
  // How much GemmPanel::done grows per tile of C of one thread block.
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

// Boxes of C have rows of 128 bytes, and each consumer adds up the tiles that it has multiplied.
HP_SHARED_CODE bool legal_by_threads(const GemmConfig& config) {
  return config.store == GemmStore::Bulk && config.out != Element::F32 && config.tile_n % 64 == 0 &&
         !config.cuts && !config.copies && !config.groups && !config.has_maps() &&
         !config.m_major && !config.boxes_in_stage;
}

// What a variant must satisfy. A consumer thread holds at most 192 accumulators.
HP_SHARED_CODE bool legal(const GemmConfig& config) {
  if (config.few_rows) return legal_few_rows(config) && !config.m_major;
  // TMA takes as long for a row of 64 bytes as for one of 128, so pairs alone have boxes of 32
  // columns.
  const int columns = config.cluster == 2 ? 32 : 64;
  const bool fits = config.swapped
                        ? config.tile_m % 16 == 0 && config.tile_m <= 256 &&
                              config.block_n() % 64 == 0 && config.store == GemmStore::Bulk &&
                              !config.has_maps() && !config.groups && !config.m_major
                        : config.block_m() % 64 == 0 && config.tile_n % columns == 0;
  return fits && config.slices() * config.slice_sums() <= 192 && config.b_box_rows() <= 256 &&
         (config.cluster == 1 || config.cluster == 2) && config.stages >= 2 && config.boxes >= 2 &&
         (!adds(config.store) || config.out == Element::F32) &&
         (!config.cuts || in_bulk(config.store)) &&
         (!config.has_maps() || (!adds(config.store) && !config.groups)) &&
         (!config.groups || (config.store == GemmStore::Bulk && !config.cuts && !config.copies)) &&
         (!config.boxes_in_stage ||
          (!config.ping_pong && in_bulk(config.store) && config.stage_bytes() % 2048 == 0 &&
           config.boxes * config.box_bytes() <= config.stage_bytes() / 2)) &&
         (!config.m_major || (config.tile_m % 64 == 0 && !config.groups)) &&
         (!config.by_threads || legal_by_threads(config)) &&
         config.shared_bytes() <= kSharedMemoryLimit;
}

}  // namespace harpe::device
