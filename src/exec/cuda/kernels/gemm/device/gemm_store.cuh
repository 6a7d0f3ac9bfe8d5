#pragma once

#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_box.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_parts.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_walk.cuh"
#include "exec/cuda/signals/device/signal.cuh"

// The epilogue. A consumer stages boxes of C (GemmConfig::store_rows) in shared memory, in a ring
// of GemmConfig::boxes. Its store warp stores them by TMA and publishes the consumer's block of C
// once all its boxes are written. Of a tile cut along K the part adds up some boxes and skips the
// others (gemm_parts.cuh).
namespace harpe::device {

// A consumer warp has written its part of the current box, or has marked it as skipped: makes it
// visible to the async proxy and arrives at the box's `staged` barrier.
template <GemmConfig kConfig>
HP_DEVICE void pass_box(const GemmShared<kConfig>& shared, int consumer,
                        Ring<kConfig.boxes>& boxes) {
  fence_proxy_async_shared();
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive(&shared.control().staged[consumer][boxes.slot]);
  boxes.advance();
}

// Stages the boxes of piece `index` of a slice.
template <GemmConfig kConfig>
HP_DEVICE void stage_piece(const GemmArgs& args, const GemmShared<kConfig>& shared,
                           const GemmWalk<kConfig>& walk, int consumer, int stage, int index,
                           float* sums, Ring<kConfig.boxes>& boxes) {
  if constexpr (kConfig.has_maps()) map_piece<kConfig>(args, walk, index, sums);
#pragma unroll
  for (int across = 0; across < Pieces<kConfig>::kBoxes; ++across) {
    wait_barrier(&shared.control().stored[consumer][boxes.slot], boxes.parity ^ 1);
    const std::uint32_t box = shared_address(shared.box(consumer, boxes.slot, stage));
    if constexpr (kConfig.swapped) {
      write_swapped_box<kConfig>(box, sums, across);
    } else {
      write_box<kConfig>(box, sums);
    }
    pass_box<kConfig>(shared, consumer, boxes);
  }
}

// In place of the boxes of a piece: there is nothing to store.
template <GemmConfig kConfig>
HP_DEVICE void skip_piece(const GemmShared<kConfig>& shared, int consumer,
                          Ring<kConfig.boxes>& boxes) {
  auto& control = shared.control();
#pragma unroll
  for (int across = 0; across < Pieces<kConfig>::kBoxes; ++across) {
    wait_barrier(&control.stored[consumer][boxes.slot], boxes.parity ^ 1);
    if (threadIdx.x % 128 == 0) control.skipped[consumer][boxes.slot] = 1;
    pass_box<kConfig>(shared, consumer, boxes);
  }
}

// Requires: this thread has completed a block's TMA stores, or met the block's storing threads at a
// barrier. Without `arrivals` it counts the block for readers on any GPU. Otherwise the thread that
// counts the last of `arrivals` blocks raises the signal, behind the stores of all of them.
HP_DEVICE void publish_block(const GemmArgs& args, const GemmPanel& panel) {
  if (panel.arrivals == 0) return publish(panel.done);
  fence_proxy_async();
  count_stored(panel.done, panel.arrivals, panel.raise, args.wait);
}

// The kernel is poisoned and stores nothing: poisons the rank that waits for the panel's signal.
HP_DEVICE void give_up_block(const GemmPanel& panel) {
  if (panel.arrivals != 0) poison_peer(panel.raise);
}

template <GemmConfig kConfig>
HP_DEVICE void store_element(void* row, int column, float value) {
  if constexpr (kConfig.store == GemmStore::DirectAdd) {
    atomicAdd_system(static_cast<float*>(row) + column, value);
  } else if constexpr (kConfig.out == Element::F32) {
    static_cast<float*>(row)[column] = value;
  } else {
    static_cast<std::uint16_t*>(row)[column] =
        static_cast<std::uint16_t>(pack<kConfig.out>(value, 0.0F));
  }
}

template <GemmConfig kConfig>
HP_DEVICE void store_direct(const GemmArgs& args, const GemmWalk<kConfig>& walk, int consumer,
                            const GemmSums<kConfig>& sums) {
  const GemmPanel& panel = walk.panel();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = walk.row() + (kConfig.ping_pong ? 0 : consumer * kConfig.block_m()) +
                        static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4;
#pragma unroll
  for (int half = 0; half < 2 * kConfig.slices(); ++half) {
    const int row = first_row + half / 2 * 64 + half % 2 * 8;
    if (row >= panel.rows) continue;
    char* to = static_cast<char*>(panel.c_address) +
               static_cast<std::int64_t>(row) * panel.c_stride * bytes_of(kConfig.out);
#pragma unroll
    for (int pair = 0; pair < kConfig.tile_n / 8; ++pair) {
      const int column = walk.column() + pair * 8 + lane % 4 * 2;
      const float* from = &sums[half / 2][pair * 4 + half % 2 * 2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (column + i >= args.n) continue;
        store_element<kConfig>(to, column + i, map_value<kConfig>(args, column + i, from[i]));
      }
    }
  }
  sync_threads(1 + consumer, 128);
  if (threadIdx.x % 128 == 0 && panel.done != nullptr && walk.row() < panel.rows) {
    publish_block(args, panel);
  }
}

// By a consumer warpgroup: stages its finished block of C.
template <GemmConfig kConfig>
HP_DEVICE void stage_whole(const GemmArgs& args, const GemmShared<kConfig>& shared,
                           const GemmWalk<kConfig>& walk, int consumer, int stage, bool skip,
                           GemmSums<kConfig>& sums, Ring<kConfig.boxes>& boxes) {
  using Piece = Pieces<kConfig>;
  if (skip) {
    for (int at = 0; at < Piece::kAll; ++at) skip_piece<kConfig>(shared, consumer, boxes);
    return;
  }
#pragma unroll
  for (int at = 0; at < Piece::kAll; ++at) {
    const int index = at % Piece::kOfSlice;
    stage_piece<kConfig>(args, shared, walk, consumer, stage, index,
                         &sums[at / Piece::kOfSlice][index * Piece::kSums], boxes);
  }
}

// By a consumer warpgroup whose `sums` are of one part of a tile: stages the pieces that it adds
// up.
template <GemmConfig kConfig>
HP_DEVICE void stage_part(const GemmArgs& args, const GemmShared<kConfig>& shared,
                          const GemmWalk<kConfig>& walk, int consumer, int stage, bool skip,
                          GemmSums<kConfig>& sums, Ring<kConfig.boxes>& boxes) {
  using Piece = Pieces<kConfig>;
  const GemmUnit& unit = walk.unit();
  const std::uint32_t shares = leave_sums<kConfig>(args, shared, walk, consumer, skip, sums);
#pragma unroll 1
  for (int at = 0; at < Piece::kAll; ++at) {
    if (!has_piece<kConfig>(shares, at, unit.parts)) {
      skip_piece<kConfig>(shared, consumer, boxes);
      continue;
    }
    const int index = at % Piece::kOfSlice;
    float piece[Piece::kSums];
    add_up_piece<kConfig>(args, unit, consumer, at / Piece::kOfSlice, index, piece);
    stage_piece<kConfig>(args, shared, walk, consumer, stage, index, piece, boxes);
  }
  if (threadIdx.x % 128 == 0 && (shares & kHasWaited) != 0) {
    stop_waiting<kConfig>(args, unit, consumer);
  }
  // For the compiler: nothing in the registers of `sums` was needed meanwhile.
#pragma unroll
  for (auto& slice : sums) {
#pragma unroll
    for (float& sum : slice) sum = 0.0F;
  }
}

// By a consumer warpgroup: the epilogue of a finished block of C, or of one part of it.
template <GemmConfig kConfig>
HP_DEVICE void hand_on(const GemmArgs& args, const GemmShared<kConfig>& shared,
                       const GemmWalk<kConfig>& walk, int consumer, int stage,
                       GemmSums<kConfig>& sums, Ring<kConfig.boxes>& boxes) {
  // One vote of all threads, because another warp may set the word between their reads.
  const bool skip = args.waits > 0 && any_of_threads(1 + consumer, 128, shared.poisoned());
  if constexpr (!in_bulk(kConfig.store)) {
    if (!skip) store_direct<kConfig>(args, walk, consumer, sums);
    if (shared.poisoned() && threadIdx.x % 128 == 0) give_up_block(walk.panel());
  } else if (kConfig.cuts && walk.unit().parts > 1) {
    stage_part<kConfig>(args, shared, walk, consumer, stage, skip, sums, boxes);
  } else {
    stage_whole<kConfig>(args, shared, walk, consumer, stage, skip, sums, boxes);
  }
}

// Calls visit(panel) for the walk's panel and for the panels that share its rows.
template <GemmConfig kConfig, class Visit>
HP_DEVICE void for_each_copy(const GemmArgs& args, const GemmWalk<kConfig>& walk, Visit visit) {
  visit(walk.panel());
  for (int i = args.row_panels; i < args.panel_count; ++i) {
    const GemmPanel& panel = panel_of(args, i);
    if (panel.rows_of == walk.panel_index()) visit(panel);
  }
}

// `has_copies`: panels share the rows of `panel`, the walk's.
template <GemmConfig kConfig>
HP_DEVICE void store_box(const GemmArgs& args, const GemmWalk<kConfig>& walk,
                         const GemmPanel& panel, bool has_copies, const char* box, int column,
                         int row) {
  if constexpr (kConfig.store == GemmStore::Add) {
    add_tile(&panel.c, box, column, row);
  } else if (has_copies) {
    for_each_copy<kConfig>(args, walk,
                           [&](const GemmPanel& copy) { store_tile(&copy.c, box, column, row); });
  } else {
    store_tile(&panel.c, box, column, row);
  }
  commit_stores();
}

// The same for groups: stores the chunks of the box, from chunk `first` of the tile on, to the
// panels that they come from.
template <GemmConfig kConfig>
HP_DEVICE void store_group_box(const GemmArgs& args, const GemmWalk<kConfig>& walk, const char* box,
                               int column, int first) {
  constexpr int kRowBytes = 128;
#pragma unroll 1
  for (int i = 0; i < 64 / kConfig.chunk_rows(); ++i) {
    const GroupChunk chunk = walk.chunk(first + i);
    if (chunk.panel < 0) break;
    store_tile(&panel_of(args, chunk.panel).c, box + i * kConfig.chunk_rows() * kRowBytes, column,
               chunk.row);
  }
  commit_stores();
}

// Spaces out stores of boxes to other GPUs. All thread blocks finish their tiles at about the same
// time, and while the link is full TMA brings no operands either. With ping-pong a tile may leave
// during the time of the next one.
template <GemmConfig kConfig>
class StorePace {
 public:
  // Clocks from box to box of a tile of `k_blocks` K blocks, while this block computes another: the
  // boxes leave during most of that time, but take at most the link's bandwidth and at least 0.7 of
  // it if all thread blocks store.
  HP_DEVICE static int clocks_apart(int k_blocks) {
    constexpr int kLeast = kConfig.clocks_of_full_link();
    constexpr int kMost = kLeast * 7 / 5;
    const int clocks = kConfig.clocks_of_next_tile(k_blocks);
    return clocks < kLeast ? kLeast : clocks < kMost ? clocks : kMost;
  }

  // Waits for the turn of the next box; the one behind it follows at least `clocks` later.
  HP_DEVICE void await(int clocks) {
    if (clocks == 0) return;
    while (clock64() < due_) pause(20);
    const long long now = clock64();
    due_ = (now > due_ + clocks ? now : due_) + clocks;
  }

 private:
  long long due_ = 0;
};

// Publishes the walk's panel and those that share its rows; without results gives them up.
template <GemmConfig kConfig>
HP_DEVICE void publish_copies(const GemmArgs& args, const GemmShared<kConfig>& shared,
                              const GemmWalk<kConfig>& walk, bool is_stored) {
  for_each_copy<kConfig>(args, walk, [&](const GemmPanel& panel) {
    if (panel.done == nullptr) return;
    if (is_stored) {
      publish_block(args, panel);
    } else if (shared.poisoned()) {
      give_up_block(panel);
    }
  });
}

// Whether a reader awaits the walk's panel or one that shares its rows.
template <GemmConfig kConfig>
HP_DEVICE bool is_awaited(const GemmArgs& args, const GemmWalk<kConfig>& walk) {
  bool found = false;
  for_each_copy<kConfig>(args, walk,
                         [&](const GemmPanel& panel) { found |= panel.done != nullptr; });
  return found;
}

// Whether the panel is a total: sums of other ranks are added to its own.
HP_DEVICE bool adds_sums(const GemmPanel& panel) { return panel.products < panel.k_blocks; }

// A consumer's boxes, by one thread. TMA may read all of them but one at a time; the consumer may
// overwrite the oldest once TMA has read it.
template <GemmConfig kConfig>
class BoxStore {
 public:
  HP_DEVICE BoxStore(const GemmArgs& args, const GemmShared<kConfig>& shared, int consumer)
      : args_(args), shared_(shared), consumer_(consumer) {}

  // Stores the unit's boxes, `clocks` apart; returns how many the consumer has not skipped.
  HP_DEVICE int store(const GemmWalk<kConfig>& walk, int clocks) {
    stages_.advance(walk.blocks());
    const int stage = stages_.before().slot;
    const int stored = store_from(stage, walk, clocks);
    if constexpr (kConfig.boxes_in_stage) {
      wait_stores_read<0>();
      release(0);
      release_stage(stage);
    }
    return stored;
  }

 private:
  static constexpr int kReading = kConfig.boxes - 1;

  HP_DEVICE int store_from(int stage, const GemmWalk<kConfig>& walk, int clocks) {
    constexpr int kPerSlice = kConfig.boxes_of_slice();
    constexpr int kAcross = kConfig.boxes_across();
    const int own = kConfig.ping_pong ? 0 : consumer_ * kConfig.slices();  // the first slice
    const GemmPanel& panel = walk.panel();
    const bool has_copies = args_.row_panels < args_.panel_count;
    int stored = 0;
    for (int box = 0; box < kConfig.slices() * kPerSlice; ++box, boxes_.advance()) {
      auto& control = shared_.control();
      wait_barrier(&control.staged[consumer_][boxes_.slot], boxes_.parity);
      if (control.skipped[consumer_][boxes_.slot] != 0) {
        control.skipped[consumer_][boxes_.slot] = 0;
        wait_stores_read<0>();
        ++reading_;
        release(0);
        continue;
      }
      const char* const staged = shared_.box(consumer_, boxes_.slot, stage);
      const int slice = (own + box / kPerSlice) * 64;
      const int across = box % kAcross * kConfig.store_columns();
      const int along = box % kPerSlice / kAcross * kConfig.store_rows();
      const int column = walk.column() + across + (kConfig.swapped ? slice : 0);
      const int first_row = walk.row() + along + (kConfig.swapped ? 0 : slice);
      if constexpr (kConfig.groups) {
        store_group_box<kConfig>(args_, walk, staged, column,
                                 (first_row - walk.row()) / kConfig.chunk_rows());
      } else {
        pace_.await(clocks);
        store_box<kConfig>(args_, walk, panel, has_copies, staged, column, first_row);
      }
      wait_stores_read<kReading>();
      ++reading_;
      release(kReading);
      ++stored;
    }
    return stored;
  }

  // TMA has read all boxes but the last `left`.
  HP_DEVICE void release(int left) {
    for (; reading_ > left; --reading_, oldest_.advance()) {
      arrive(&shared_.control().stored[consumer_][oldest_.slot]);
    }
  }

  // In place of the consumer's warps: their boxes have been read.
  HP_DEVICE void release_stage(int stage) {
    constexpr int kWarps = 4;
    Barrier* const emptied = &shared_.control().emptied[stage];
#pragma unroll
    for (int block = 0; block < kConfig.cluster; ++block) {
      if constexpr (kConfig.cluster == 1) {
        arrive(emptied, kWarps);
      } else {
        arrive_at(emptied, block, kWarps);
      }
    }
  }

  const GemmArgs& args_;
  const GemmShared<kConfig>& shared_;
  int consumer_;
  Ring<kConfig.stages> stages_;
  Ring<kConfig.boxes> boxes_;
  Ring<kConfig.boxes> oldest_;
  int reading_ = 0;  // boxes handed to TMA and not yet released, from `oldest_` on
  StorePace<kConfig> pace_;
};

// The store warp of a consumer, one thread. The consumer's block of C is published once all its
// boxes are completely written, not only read. What follows a unit is found out before its boxes
// are awaited, so that nothing is left to do behind the last box of a kernel.
template <GemmConfig kConfig>
HP_DEVICE void store_boxes(const GemmArgs& args, const GemmShared<kConfig>& shared, int consumer) {
  BoxStore<kConfig> boxes(args, shared, consumer);
  GemmWalk<kConfig> walk(args, shared.rows());
  for (bool is_unit = walk.locate(); is_unit;) {
    GemmWalk<kConfig> next = walk;
    next.next();
    is_unit = next.locate();
    if (walk.mine(consumer)) {
      const bool is_published = walk.row() < walk.panel_rows() && is_awaited<kConfig>(args, walk);
      int clocks = 0;
      if (kConfig.ping_pong && is_published && is_unit) {
        const bool is_last = !adds_sums(walk.panel()) && adds_sums(next.panel());
        clocks = is_last ? args.last_clocks : StorePace<kConfig>::clocks_apart(walk.blocks());
      }
      const int stored = boxes.store(walk, clocks);
      if (is_published && stored > 0) wait_stores<0>();
      if (is_published) {
        const bool is_stored = is_complete<kConfig>(args, walk.unit(), consumer, stored);
        publish_copies<kConfig>(args, shared, walk, is_stored);
      }
    }
    walk = next;
  }
  wait_stores<0>();
}

}  // namespace harpe::device
