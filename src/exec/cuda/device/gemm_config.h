#pragma once

#include "exec/cuda/device/types.h"

namespace harpe::device {

// How B lies in memory: rows along N (B[k, n]) or along K (B[n, k]).
enum class GemmLayout : std::uint8_t { NMajor, KMajor };

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

// One variant of the kernel. Two consumer warpgroups multiply: both halves of one tile's rows, or,
// with `ping_pong`, every second tile each, so that one stores while the other multiplies.
struct GemmConfig {
  int tile_m = 128;
  int tile_n = 256;
  int stages = 4;
  int cluster = 2;    // blocks along M that load B together
  int k_cluster = 1;  // blocks that share the K of a tile and add up their sums
  int boxes = 2;      // of C that a consumer may have staged
  bool ping_pong = false;
  int lag = 0;  // stages that the second consumer is behind the first, which so stores while the
                // other multiplies; 0: none
  bool early = false;  // the first loads leave before the block's threads have met
  GemmLayout layout = GemmLayout::NMajor;
  Element in = Element::BF16;
  Element out = Element::BF16;
  GemmStore store = GemmStore::Bulk;
  bool cuts = false;    // tiles may be cut along K
  bool copies = false;  // blocks may be given to copying

  static constexpr int kTileK = 64;
  static constexpr int kConsumers = 2;
  static constexpr int kThreads = 128 * (1 + kConsumers);

  // Rows of a consumer's block, and products of 64 rows it is made of.
  HP_SHARED_CODE int block_m() const { return ping_pong ? tile_m : tile_m / kConsumers; }
  HP_SHARED_CODE int cluster_blocks() const { return cluster * k_cluster; }
  HP_SHARED_CODE int slices() const { return block_m() / 64; }
  HP_SHARED_CODE int a_bytes() const { return tile_m * kTileK * 2; }
  HP_SHARED_CODE int b_bytes() const { return tile_n * kTileK * 2; }
  // How the blocks of a cluster divide loading B: its columns, or, where those are no whole boxes
  // of 64 for each, its rows.
  HP_SHARED_CODE bool divides_rows() const {
    return layout == GemmLayout::NMajor && tile_n % (64 * cluster) != 0;
  }
  // Rows of a box of B.
  HP_SHARED_CODE int b_box_rows() const {
    if (layout == GemmLayout::KMajor) return tile_n / cluster;
    return divides_rows() ? kTileK / cluster : kTileK;
  }
  HP_SHARED_CODE int stage_bytes() const { return a_bytes() + b_bytes(); }
  // Columns of a staged box of C: rows of 128 bytes.
  HP_SHARED_CODE int store_columns() const { return 128 / bytes_of(out); }
  HP_SHARED_CODE int boxes_per_slice() const { return tile_n / store_columns(); }
  HP_SHARED_CODE int staged_boxes() const { return in_bulk(store) ? boxes : 0; }
  static constexpr int kBoxBytes = 64 * 128;

  // Barriers, then what needs 1,024 bytes of alignment.
  static constexpr int kBarrierBytes = 1024;
  HP_SHARED_CODE int shared_bytes() const {
    return kBarrierBytes + stages * stage_bytes() + kConsumers * staged_boxes() * kBoxBytes;
  }
  // Registers of a thread; together what the block has at its start, 168 each.
  HP_SHARED_CODE int mover_registers() const { return copies ? 64 : 56; }
  HP_SHARED_CODE int consumer_registers() const { return copies ? 216 : 224; }
  // How often GemmPanel::done grows per tile of C.
  HP_SHARED_CODE int arrivals_per_tile() const {
    const int storing = k_cluster < boxes_per_slice() ? k_cluster : boxes_per_slice();
    return ping_pong ? 1 : kConsumers * storing;
  }
};

// What goes with blocks that share K: no other use of the cluster, sums that fit into the stages.
HP_SHARED_CODE bool legal_along_k(const GemmConfig& config) {
  return config.k_cluster == 1 ||
         (config.k_cluster <= 4 && config.cluster == 1 && !config.ping_pong && config.lag == 0 &&
          !config.cuts && !config.copies && in_bulk(config.store) && config.slices() == 1 &&
          config.tile_m * config.tile_n * 4 <= config.stages * config.stage_bytes());
}

// The rules a variant keeps.
HP_SHARED_CODE bool legal(const GemmConfig& config) {
  const int block = config.block_m();
  return block % 64 == 0 && (block / 64) * config.tile_n <= 256 && config.tile_n % 64 == 0 &&
         legal_along_k(config) && (config.cluster == 1 || config.cluster == 2) &&
         config.stages >= 2 && config.boxes >= 2 && (!config.early || config.cluster == 1) &&
         config.lag < config.stages && (config.lag == 0 || !config.ping_pong) &&
         (!adds(config.store) || config.out == Element::F32) &&
         config.shared_bytes() <= kSharedMemoryLimit;
}

}  // namespace harpe::device
