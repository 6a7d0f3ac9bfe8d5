#pragma once

#include "exec/cuda/device/gemm_config.h"
#include "exec/cuda/device/gemm_order.h"
#include "exec/cuda/device/mbarrier.cuh"

namespace harpe::device {

// Few panels and pieces travel with the arguments: reading them costs nothing, where a table in
// global memory costs two misses before the first load.
HP_DEVICE const GemmPanel& panel_of(const GemmArgs& args, int panel) {
  return args.panels == nullptr ? args.few_panels[panel] : args.panels[panel];
}

HP_DEVICE const GemmPiece& piece_of(const GemmArgs& args, int piece) {
  return args.pieces == nullptr ? args.few_pieces[piece] : args.pieces[piece];
}

// The units of one cluster in order. Every role of a block holds one and they stay in step, since
// they depend on nothing but the arguments.
template <GemmConfig kConfig>
class GemmWalk {
 public:
  HP_DEVICE explicit GemmWalk(const GemmArgs& args)
      : args_(args),
        stride_((static_cast<int>(gridDim.x) - args.copy_blocks) / kConfig.cluster),
        unit_((static_cast<int>(blockIdx.x) - args.copy_blocks) / kConfig.cluster) {
    locate();
  }

  [[nodiscard]] HP_DEVICE bool valid() const { return valid_; }
  HP_DEVICE void next() {
    unit_ += stride_;
    ++count_;
    locate();
  }

  [[nodiscard]] HP_DEVICE const GemmPanel& panel() const { return panel_of(args_, panel_); }
  // First row of this block's tile in the panel, and first column in C.
  [[nodiscard]] HP_DEVICE int row() const { return row_; }
  [[nodiscard]] HP_DEVICE int column() const { return column_; }
  [[nodiscard]] HP_DEVICE int blocks() const { return end_ - begin_; }
  [[nodiscard]] HP_DEVICE int first_block() const { return begin_; }
  [[nodiscard]] HP_DEVICE const GemmUnit& unit() const { return at_; }
  // With ping_pong consumers take turns.
  [[nodiscard]] HP_DEVICE bool mine(int consumer) const {
    return !kConfig.ping_pong || (count_ & 1) == consumer;
  }

 private:
  HP_DEVICE void locate() {
    at_ = unit_at(unit_, args_.full_tiles, args_.parts);
    valid_ = at_.tile < args_.tiles;
    if (!valid_) return;
    while (panel_ + 1 < args_.panel_count && at_.tile >= panel_of(args_, panel_ + 1).first_tile) {
      ++panel_;
    }
    const GemmPanel& panel = panel_of(args_, panel_);
    const int rows = ceil_div(panel.rows, kConfig.tile_m * kConfig.cluster);
    const TilePlace place = place_of(at_.tile - panel.first_tile, rows, args_.n_tiles, args_.group);
    const int in_cluster = kConfig.cluster == 1 ? 0 : static_cast<int>(block_in_cluster());
    row_ = (place.row * kConfig.cluster + in_cluster) * kConfig.tile_m;
    column_ = place.column * kConfig.tile_n;
    begin_ = part_begin(panel.k_blocks, at_.part, at_.parts);
    end_ = part_begin(panel.k_blocks, at_.part + 1, at_.parts);
  }

  const GemmArgs& args_;
  int stride_;
  int unit_;
  int count_ = 0;
  int panel_ = 0;
  GemmUnit at_{};
  bool valid_ = false;
  int row_ = 0;
  int column_ = 0;
  int begin_ = 0;
  int end_ = 0;
};

// Calls visit(piece, its index, first, last) for the blocks [first, last) of each piece that the
// unit uses, in order.
template <GemmConfig kConfig, class Visit>
HP_DEVICE void for_each_piece(const GemmArgs& args, const GemmWalk<kConfig>& walk, Visit visit) {
  int blocks = walk.blocks();
  int skip = walk.first_block();
  for (int piece = walk.panel().first_piece; blocks > 0; ++piece) {
    const GemmPiece& from = piece_of(args, piece);
    const int in_piece = ceil_div(from.k_count, GemmConfig::kTileK);
    const int last = skip + blocks < in_piece ? skip + blocks : in_piece;
    if (last > skip) {
      visit(from, piece, skip, last);
      blocks -= last - skip;
    }
    skip = skip > in_piece ? skip - in_piece : 0;
  }
}

// Shared memory of a block, aligned to 1,024 bytes: barriers, then boxes aligned to 1,024 bytes.
// Only their sizes differ between variants.
template <GemmConfig kConfig>
struct GemmShared {
  struct Control {
    Barrier filled[kConfig.stages];                                // by the copy engine
    Barrier emptied[kConfig.stages];                               // by all who read the stage
    Barrier staged[GemmConfig::kConsumers][kConfig.boxes];         // a box of C is written
    Barrier stored[GemmConfig::kConsumers][kConfig.boxes];         // and read by the copy engine
    std::uint32_t skipped[GemmConfig::kConsumers][kConfig.boxes];  // there is nothing to store
    std::uint32_t last[GemmConfig::kConsumers];  // this part was the last of its tile
    std::uint32_t poisoned;
    std::uint32_t arrived;  // flags that were acquired, in the order of their use
    std::uint32_t early;    // 1: the first of them before anything else
  };
  static_assert(sizeof(Control) <= GemmConfig::kBarrierBytes);

  char* base;

  [[nodiscard]] HP_DEVICE Control& control() const { return *reinterpret_cast<Control*>(base); }
  [[nodiscard]] HP_DEVICE bool poisoned() const {
    return *static_cast<volatile std::uint32_t*>(&control().poisoned) != 0;
  }
  [[nodiscard]] HP_DEVICE char* a(int stage) const {
    return base + GemmConfig::kBarrierBytes + stage * kConfig.stage_bytes();
  }
  [[nodiscard]] HP_DEVICE char* b(int stage) const { return a(stage) + kConfig.a_bytes(); }
  [[nodiscard]] HP_DEVICE char* box(int consumer, int index) const {
    return a(kConfig.stages) + (consumer * kConfig.boxes + index) * GemmConfig::kBoxBytes;
  }
};

}  // namespace harpe::device
