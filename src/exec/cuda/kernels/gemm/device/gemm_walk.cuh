#pragma once

#include "exec/cuda/device/copy.cuh"
#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/device/mbarrier.cuh"
#include "exec/cuda/device/shares.h"
#include "exec/cuda/kernels/gemm/device/gemm_config.h"
#include "exec/cuda/kernels/gemm/device/gemm_order.h"

namespace harpe::device {

// Up to GemmArgs::kFew panels and K chunks are kernel arguments, which cost nothing to read; a
// table in global memory costs two cache misses before the first load.
HP_DEVICE const GemmPanel& panel_of(const GemmArgs& args, int panel) {
  return args.panels == nullptr ? args.few_panels[panel] : args.panels[panel];
}

HP_DEVICE const GemmKChunk& k_chunk_of(const GemmArgs& args, int k_chunk) {
  return args.k_chunks == nullptr ? args.few_k_chunks[k_chunk] : args.k_chunks[k_chunk];
}

// read(panel) by value. A field of the few is read as a constant, in 80 to 140 clocks: through the
// reference that panel_of returns it is a generic load, which takes 320 of them, each time.
template <class Read>
HP_DEVICE auto read_panel(const GemmArgs& args, int panel, const Read& read) {
  if (args.panels == nullptr) return read(args.few_panels[panel]);
  return read(args.panels[panel]);
}

template <class Read>
HP_DEVICE auto read_k_chunk(const GemmArgs& args, int k_chunk, const Read& read) {
  if (args.k_chunks == nullptr) return read(args.few_k_chunks[k_chunk]);
  return read(args.k_chunks[k_chunk]);
}

// After a failed wait: from here on loads fetch data that never arrived, and the storing roles of
// the block must not store it. The proxy fence orders the store of the word before later TMA loads.
HP_DEVICE void mark_poisoned(std::uint32_t& poisoned) {
  *static_cast<volatile std::uint32_t*>(&poisoned) = 1;
  fence_proxy_async_shared();
}

// The number of rows in use of each panel, in shared memory.
class GroupRows {
 public:
  HP_DEVICE explicit GroupRows(std::int32_t* words) : words_(words) {}

  // `begins`: the panel is the first of its group: its B differs from the preceding panel's.
  HP_DEVICE void set(int panel, std::int64_t rows, bool begins) const {
    words_[panel] = begins ? ~static_cast<std::int32_t>(rows) : static_cast<std::int32_t>(rows);
  }
  [[nodiscard]] HP_DEVICE bool begins(int panel) const { return words_[panel] < 0; }
  [[nodiscard]] HP_DEVICE int rows(int panel) const {
    const std::int32_t word = words_[panel];
    return word < 0 ? ~word : word;
  }

 private:
  std::int32_t* words_;
};

// A chunk of a tile: rows of `panel` from `row` on; the chunk is empty if `panel` is negative.
struct GroupChunk {
  int panel;
  int row;
};

// The units of one cluster in order: for (GemmWalk walk(..); walk.locate(); walk.next()). Every
// role of a block has its own walk. The walks agree, because they depend only on the arguments and
// on the groups' row counts. Clusters that copy first take units only from args.joined on, where
// all clusters count, those that copied first.
template <GemmConfig kConfig>
class GemmWalk {
 public:
  HP_DEVICE GemmWalk(const GemmArgs& args, GroupRows rows)
      : args_(&args),
        rows_(rows),
        cluster_(static_cast<int>(blockIdx.x) / kConfig.cluster),
        clusters_(static_cast<int>(gridDim.x) / kConfig.cluster),
        unit_(cluster_ - args.copy_blocks / kConfig.cluster) {
    if (unit_ < 0) unit_ = args.joined + cluster_;
  }

  // Finds the place of the unit, which all that follows describes; false: there is no such unit.
  HP_DEVICE bool locate() {
    at_ = kConfig.groups ? GemmUnit{.tile = unit_, .part = 0, .parts = 1}
                         : unit_at(unit_, args_->full_tiles, args_->parts);
    if (!(kConfig.groups ? find_group() : find_panel())) return false;
    struct Fields {  // all together, so that the thread waits for them once
      int first_tile;
      int k_blocks;
      int rows;
      int first_k_chunk;
      Divisor last_band;
    };
    const Fields panel = read_panel(*args_, panel_, [](const GemmPanel& from) {
      return Fields{from.first_tile, from.k_blocks, from.rows, from.first_k_chunk, from.last_band};
    });
    panel_rows_ = panel.rows;
    first_k_chunk_ = panel.first_k_chunk;
    const TilePlace place =
        kConfig.groups ? place_in_group() : place_in(panel.first_tile, panel.last_band);
    const int in_cluster = kConfig.cluster == 1 ? 0 : static_cast<int>(block_in_cluster());
    row_ = (place.row * kConfig.cluster + in_cluster) * kConfig.tile_m;
    column_ = place.column * kConfig.tile_n;
    const bool is_whole = at_.parts == 1;
    begin_ = is_whole ? 0 : share_begin(panel.k_blocks, at_.part, args_->parts);
    end_ = is_whole ? panel.k_blocks : share_begin(panel.k_blocks, at_.part + 1, args_->parts);
    return true;
  }
  HP_DEVICE void next() {
    const int joined = kConfig.copies ? args_->joined : GemmArgs::kNeverJoined;
    if (unit_ >= joined) {
      unit_ += clusters_;
    } else {
      unit_ += clusters_ - args_->copy_blocks / kConfig.cluster;
      if (unit_ >= joined) unit_ = joined + cluster_;
    }
    ++count_;
  }

  // The unit's panel; with groups the first panel of the group.
  [[nodiscard]] HP_DEVICE const GemmPanel& panel() const { return panel_of(*args_, panel_); }
  [[nodiscard]] HP_DEVICE int panel_index() const { return panel_; }
  [[nodiscard]] HP_DEVICE int panel_rows() const { return panel_rows_; }
  [[nodiscard]] HP_DEVICE int first_k_chunk() const { return first_k_chunk_; }
  // Groups: the source of chunk `index` of the tile.
  [[nodiscard]] HP_DEVICE GroupChunk chunk(int index) const {
    int before = row_ / kConfig.chunk_rows() + index;
    int panel = panel_;
    do {
      const int chunks = chunks_of(panel);
      if (before < chunks) return {.panel = panel, .row = before * kConfig.chunk_rows()};
      before -= chunks;
      ++panel;
    } while (panel < args_->panel_count && !rows_.begins(panel));
    return {.panel = -1, .row = 0};
  }
  // First row of this block's tile in the panel, and first column in C.
  [[nodiscard]] HP_DEVICE int row() const { return row_; }
  [[nodiscard]] HP_DEVICE int column() const { return column_; }
  [[nodiscard]] HP_DEVICE int blocks() const { return end_ - begin_; }
  [[nodiscard]] HP_DEVICE int first_block() const { return begin_; }
  [[nodiscard]] HP_DEVICE const GemmUnit& unit() const { return at_; }
  // Whether the consumer of this unit computes no further one.
  [[nodiscard]] HP_DEVICE bool is_last() const {
    GemmWalk further = *this;
    further.next();
    if constexpr (kConfig.ping_pong) further.next();
    return unit_at(further.unit_, args_->full_tiles, args_->parts).tile >= args_->tiles;
  }
  // Whether `consumer` computes the unit; with ping_pong consumers alternate.
  [[nodiscard]] HP_DEVICE bool mine(int consumer) const {
    return !kConfig.ping_pong || (count_ & 1) == consumer;
  }

 private:
  [[nodiscard]] HP_DEVICE int chunks_of(int panel) const {
    return ceil_div(rows_.rows(panel), kConfig.chunk_rows());
  }

  // Finds the group that has tile `at_`; whether there is one. Sets the group's row tiles.
  HP_DEVICE bool find_group() {
    int end = panel_;
    for (; panel_ < args_->panel_count; panel_ = end) {
      int chunks = 0;
      do {
        chunks += chunks_of(end);
        ++end;
      } while (end < args_->panel_count && !rows_.begins(end));
      row_tiles_ = ceil_div(chunks, GemmConfig::kChunks);
      if (at_.tile < first_tile_ + row_tiles_ * args_->n_tiles) break;
      first_tile_ += row_tiles_ * args_->n_tiles;
    }
    return panel_ < args_->panel_count;
  }

  // The same without groups: the host has counted the tiles of each panel.
  HP_DEVICE bool find_panel() {
    if (at_.tile >= args_->tiles) return false;
    const auto first_tile_of = [&](int panel) {
      return read_panel(*args_, panel, [](const GemmPanel& from) { return from.first_tile; });
    };
    while (panel_ + 1 < args_->panel_count && at_.tile >= first_tile_of(panel_ + 1)) ++panel_;
    return true;
  }

  [[nodiscard]] HP_DEVICE TilePlace place_in(int first_tile, const Divisor& last_band) const {
    const int rows = ceil_div(panel_rows_, kConfig.tile_m * kConfig.cluster);
    return place_of(at_.tile - first_tile, args_->group.number, args_->band, [&](int first) {
      return rows - first < args_->group.number ? last_band : args_->group;
    });
  }

  // Plain division: the group's row tiles are known only at run time, so there is no Divisor.
  [[nodiscard]] HP_DEVICE TilePlace place_in_group() const {
    const int group = args_->group.number;
    return place_of(at_.tile - first_tile_, group, args_->band, [&](int first) {
      return row_tiles_ - first < group ? row_tiles_ - first : group;
    });
  }

  const GemmArgs* args_;
  GroupRows rows_;
  int cluster_;
  int clusters_;
  int unit_;
  int count_ = 0;
  int panel_ = 0;
  int first_tile_ = 0;  // of the group
  int row_tiles_ = 0;   // the group's
  GemmUnit at_{};
  int panel_rows_ = 0;
  int first_k_chunk_ = 0;
  int row_ = 0;
  int column_ = 0;
  int begin_ = 0;
  int end_ = 0;
};

// Calls visit(K chunk, its index, first, last) for each K chunk or addend that the unit uses, in
// order, with its K blocks [first, last).
template <GemmConfig kConfig, class Visit>
HP_DEVICE void for_each_k_chunk(const GemmArgs& args, const GemmWalk<kConfig>& walk, Visit visit) {
  int blocks = walk.blocks();
  int skip = walk.first_block();
  for (int k_chunk = walk.first_k_chunk(); blocks > 0; ++k_chunk) {
    const GemmKChunk& from = k_chunk_of(args, k_chunk);
    const int in_k_chunk = read_k_chunk(args, k_chunk, [](const GemmKChunk& one) {
      return ceil_div(one.k_count, GemmConfig::kTileK);
    });
    const int last = skip + blocks < in_k_chunk ? skip + blocks : in_k_chunk;
    if (last > skip) {
      visit(from, k_chunk, skip, last);
      blocks -= last - skip;
    }
    skip = skip > in_k_chunk ? skip - in_k_chunk : 0;
  }
}

// What a thread of a consumer accumulates.
template <GemmConfig kConfig>
using GemmSums = float[kConfig.slices()][kConfig.slice_sums()];

// What threads that store need of a panel, and of an addend. They are in shared memory: behind the
// last K block a read of a kernel argument takes hundreds of clocks.
struct NotedPanel {
  std::uint16_t* c;
  std::int64_t stride;  // elements from row to row
  std::int32_t first_addend;
  std::int32_t first_noted;  // index of its first addend among the noted ones
  std::int16_t addends;
  std::int8_t rows_of;  // as GemmPanel's
  std::int8_t is_in_data;
};

struct RowsAddend {
  void* address;
  std::int64_t stride;  // elements from row to row
  std::int32_t is_in_data;
};

template <bool kNotes>
struct NotedPanels {};

template <>
struct NotedPanels<true> {
  NotedPanel panels[GemmConfig::kMostNotedPanels];
  RowsAddend addends[kMostNotedAddends];  // those of all panels, in their order
};

// Shared memory of a thread block, aligned to 1,024 bytes: barriers, then stages of A and B and
// boxes of C, each aligned to 1,024 bytes, then the groups' row counts.
template <GemmConfig kConfig>
struct GemmShared {
  struct Control {
    Barrier filled[kConfig.stages];                                // TMA has filled the stage
    Barrier emptied[kConfig.stages];                               // all readers released it
    Barrier begun;                                                 // see FirstLoad
    Barrier staged[GemmConfig::kConsumers][kConfig.boxes];         // a box of C is written
    Barrier stored[GemmConfig::kConsumers][kConfig.boxes];         // TMA has read the box
    std::uint32_t skipped[GemmConfig::kConsumers][kConfig.boxes];  // 1: nothing to store
    std::uint32_t shares[GemmConfig::kConsumers];  // of a cut tile: which parts' (gemm_parts.cuh)
    std::uint32_t poisoned;
    Barrier copied[kConfig.copies ? kCopySlots : 1];
    std::uint32_t arrived;  // number of flags that warp 3 has acquired, in the order of their use
    Barrier may_store;      // by_threads: `noted` is written, and the consumers may store
    NotedPanels<kConfig.by_threads> noted;
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
  // `stage`: that of the tile's last K block, in which its boxes may lie.
  [[nodiscard]] HP_DEVICE char* box(int consumer, int index, int stage) const {
    char* const first = kConfig.boxes_in_stage
                            ? a(stage) + consumer * (kConfig.stage_bytes() / 2)
                            : a(kConfig.stages) + consumer * kConfig.boxes * kConfig.box_bytes();
    return first + index * kConfig.box_bytes();
  }
  [[nodiscard]] HP_DEVICE GroupRows rows() const {
    char* const words = base + kConfig.shared_bytes() - kConfig.group_bytes();
    return GroupRows(reinterpret_cast<std::int32_t*>(words));
  }
};

}  // namespace harpe::device
