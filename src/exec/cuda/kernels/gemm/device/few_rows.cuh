#pragma once

#include "exec/cuda/device/copy.cuh"
#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/gemm/device/few_rows_add.cuh"

// C = A B for few rows of A, up to 256 of all panels, where reading B takes the time. A tile has
// all rows. Columns of B are the M dimension of wgmma, rows of A its N dimension. Thread blocks
// stream through equal shares of B (few_rows_order.h). In the producer warpgroup, warp 0 loads B as
// far ahead as stages are free, and warps 1 to 3 load rows of A once they have arrived. Each
// consumer warpgroup computes 64 columns. Beyond 128 rows two thread blocks, a pair, divide the
// rows; each loads half of B for both by multicast.
namespace harpe::device {

// This thread block's K blocks of a part, one slot at a time.
template <GemmConfig kConfig>
class SlotWalk {
 public:
  HP_DEVICE explicit SlotWalk(const StreamWalk& walk)
      : first_(walk.own_first()), last_(walk.own_last()) {}

  [[nodiscard]] HP_DEVICE bool valid() const { return first_ < last_; }
  [[nodiscard]] HP_DEVICE bool is_full() const { return first_ + kStages <= last_; }
  HP_DEVICE void next() { first_ += kStages; }
  [[nodiscard]] HP_DEVICE int count() const {
    return last_ - first_ < kStages ? last_ - first_ : kStages;
  }
  // The column of A at which a stage's K block begins.
  [[nodiscard]] HP_DEVICE int k(int stage) const { return (first_ + stage) * GemmConfig::kTileK; }
  // Calls visit(stage) for each stage of the slot that has a K block.
  template <class Visit>
  HP_DEVICE void for_each(Visit visit) const {
#pragma unroll
    for (int stage = 0; stage < kStages; ++stage) {
      if (stage == 0 || first_ + stage < last_) visit(stage);
    }
  }

 private:
  static constexpr int kStages = kConfig.slot_stages();
  int first_;
  int last_;
};

// Issues the loads that first fill the ring GemmArgs::b_apart clocks apart.
class PacedLoads {
 public:
  HP_DEVICE PacedLoads(const GemmArgs& args, int count)
      : apart_(args.b_apart), left_(count), due_(clocks()) {}
  // After each load: waits until the next one may be issued.
  HP_DEVICE void await_next() {
    if (--left_ <= 0) return;
    due_ += apart_;
    while (static_cast<std::int32_t>(clocks() - due_) < 0) continue;
  }

 private:
  std::int32_t apart_;
  int left_;
  std::uint32_t due_;
};

// Issues every load at once. A type of its own, because the compiler does not unroll a loop that
// may wait for the clock.
struct LoadsAtOnce {
  HP_DEVICE LoadsAtOnce(const GemmArgs&, int) {}
  HP_DEVICE void await_next() {}
};

// Warp 0, one thread: loads B. It waits for free slots only, never for a flag.
template <GemmConfig kConfig, class FirstLoads>
HP_DEVICE void load_weights(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                            StreamWalk walk) {
  constexpr bool kRows = kConfig.layout == GemmLayout::KMajor;  // of 64 values along K
  constexpr int kColumns = kConfig.tile_n / kConfig.cluster;
  const int own = block_of_pair<kConfig>() * kColumns;  // of the tile's columns
  auto& control = shared.control();
  Ring<kConfig.slots()> ring;
  FirstLoads first(args, kConfig.slots());
  for (; walk.valid(); walk.next()) {
    const int column = walk.tile() * kConfig.tile_n + own;
    for (SlotWalk<kConfig> slot(walk); slot.valid(); slot.next(), ring.advance()) {
      Barrier* const filled = &control.filled[ring.slot];
      wait_barrier(&control.emptied[ring.slot], ring.parity ^ 1);
      arrive_expecting(filled, static_cast<std::uint32_t>(slot.count() * kConfig.b_bytes()));
      slot.for_each([&](int stage) {
        char* const to = shared.b(ring.slot) + stage * kConfig.stage_bytes() + own * 128;
        const int k = slot.k(stage);
        if constexpr (kRows) {
          load_for_pair<kConfig>(to, &args.b, filled, k, column);
        } else {
#pragma unroll
          for (int at = 0; at < kColumns; at += 64) {
            load_for_pair<kConfig>(to + at * 128, &args.b, filled, column + at, k);
          }
        }
      });
      first.await_next();
    }
  }
  if constexpr (kConfig.cluster > 1) await_released(control.emptied, ring);
}

// The source of one lane's panel: the K chunk that has the current position along K.
template <GemmConfig kConfig>
class RowsSource {
 public:
  HP_DEVICE RowsSource(const GemmArgs& args, int panel) : args_(args), first_(0) {
    if (panel >= args.row_panels) return;
    const auto rows_of = [&](int i) {
      return read_panel(args, i, [](const GemmPanel& from) { return rows_in_tile(from); });
    };
    first_ = read_panel(args, panel, [](const GemmPanel& from) { return from.first_k_chunk; });
    rows_ = rows_of(panel);
    for (int i = 0; i < panel; ++i) row_ += rows_of(i);
    if constexpr (kConfig.cluster > 1) take_own();
    prefetch_map(&map_of(k_chunk_of(args, first_)));
  }
  [[nodiscard]] HP_DEVICE int rows() const { return rows_; }
  [[nodiscard]] HP_DEVICE bool has(int k) const { return rows_ == 0 || k < end_; }
  // By a whole warp: for each source of the first `count` lanes one thread calls load(map, the K
  // chunk's first column, row in the stage, row of the panel).
  template <class Load>
  HP_DEVICE void for_each(int count, Load load) const {
    constexpr std::uint32_t kWarp = 0xffffffff;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const auto map = __shfl_sync(kWarp, reinterpret_cast<std::uint64_t>(map_), i);
      const int begin = __shfl_sync(kWarp, begin_, i);
      const int row = __shfl_sync(kWarp, row_, i);
      int skipped = 0;
      if constexpr (kConfig.cluster > 1) {
        if (__shfl_sync(kWarp, rows_, i) == 0) continue;
        skipped = __shfl_sync(kWarp, skipped_, i);
      }
      if (elected()) load(reinterpret_cast<const TensorMap*>(map), begin, row, skipped);
    }
  }

  // Back to the first K chunk.
  HP_DEVICE void restart() {
    k_chunk_ = first_ - 1;
    end_ = 0;
  }
  // On to the K chunk that has `k`; waits for its flag. `is_used`: see Waiter::wait.
  template <class Used>
  HP_DEVICE void advance(int k, Waiter& waiter, const Used& is_used) {
    struct Fields {
      int k_begin;
      int k_count;
      FlagWait ready;
    };
    Fields from{};
    do {
      from = read_k_chunk(args_, ++k_chunk_, [](const GemmKChunk& one) {
        return Fields{one.k_begin, one.k_count, one.ready};
      });
      end_ = from.k_begin + from.k_count;
    } while (k >= end_);
    begin_ = from.k_begin;
    map_ = &map_of(k_chunk_of(args_, k_chunk_));
    waiter.wait(from.ready, k_chunk_, is_used);
  }

 private:
  // Restricts the source to the panel's rows that this block of the pair has.
  HP_DEVICE void take_own() {
    const OwnRows own = own_rows<kConfig>(args_);
    const int begin = max(row_, own.begin);
    rows_ = max(min(row_ + rows_, own.end) - begin, 0);
    skipped_ = begin - row_;
    row_ = begin - own.begin;
  }
  HP_DEVICE static const TensorMap& map_of(const GemmKChunk& k_chunk) {
    return block_of_pair<kConfig>() == 0 ? k_chunk.map : k_chunk.rest;
  }

  const GemmArgs& args_;
  const TensorMap* map_ = nullptr;
  int first_;  // the panel's first K chunk
  int rows_ = 0;
  int row_ = 0;
  int skipped_ = 0;  // rows of the panel before those of this block
  int k_chunk_ = 0;
  int begin_ = 0;
  int end_ = 0;
};

// Warps 1 to 3: load rows of A. Each panel of the warp has a lane that tracks its source and waits
// for its flags. One thread issues the loads of all panels, which is faster than one lane each.
template <GemmConfig kConfig>
HP_DEVICE void load_rows(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                         StreamWalk walk, int warp) {
  const int panels = (args.row_panels - warp + kRowWarps) / kRowWarps;
  if (panels <= 0) return;
  constexpr int kRowBytes = GemmConfig::kTileK * 2;
  auto& control = shared.control();
  const int own = static_cast<int>(threadIdx.x) % 32 * kRowWarps + warp - 1;
  RowsSource<kConfig> source(args, own);
  const auto bytes =
      static_cast<std::uint32_t>(__reduce_add_sync(0xffffffff, source.rows()) * kRowBytes);
  await_kernel_before();
  if (own == 0) {
    note_begin(args.wait, false);
    if (args.waits == 0 || args.bounds.ended != nullptr) let_next_kernel_begin();
  }
  Waiter waiter(args.wait);
  Ring<kConfig.slots()> ring;
  for (; walk.valid(); walk.next()) {
    source.restart();
    for (SlotWalk<kConfig> slot(walk); slot.valid(); slot.next(), ring.advance()) {
      Barrier* const filled = &control.filled[ring.slot];
      wait_barrier(&control.emptied[ring.slot], ring.parity ^ 1);
      if (elected()) arrive_expecting(filled, bytes * static_cast<std::uint32_t>(slot.count()));
      slot.for_each([&](int stage) {
        const int k = slot.k(stage);
        if (!source.has(k)) {
          const auto last = ring.before();
          source.advance(k, waiter,
                         [&] { return is_over(&control.emptied[last.slot], last.parity); });
          if (waiter.poisoned()) mark_poisoned(control.poisoned);
        }
        __syncwarp();
        char* const to = shared.a(ring.slot) + stage * kConfig.stage_bytes();
        source.for_each(panels, [&](const TensorMap* map, int begin, int row, int skipped) {
          load_tile(to + row * kRowBytes, map, filled, k - begin, skipped);
        });
      });
    }
  }
}

// One stage for one consumer's 64 columns: four steps of 16 along K.
template <GemmConfig kConfig>
HP_DEVICE void multiply_columns(float (&sums)[kConfig.tile_m / 2], std::uint64_t weights,
                                std::uint64_t rows) {
  using Product = Wgmma<kConfig.tile_m, kConfig.in, false>;
#pragma unroll
  for (int step = 0; step < GemmConfig::kTileK / 16; ++step) {
    if constexpr (kConfig.layout == GemmLayout::NMajor) {
      Product::multiply_transposed(sums, weights + step * kNMajorStep, rows + step * kKMajorStep,
                                   true);
    } else {
      Product::multiply(sums, weights + step * kKMajorStep, rows + step * kKMajorStep, true);
    }
  }
}

// A consumer warp has read the slot: arrives at its `emptied` barrier, with pairs in both blocks,
// because both load into it.
template <GemmConfig kConfig>
HP_DEVICE void release(const FewRowsShared<kConfig>& shared, int slot) {
  Barrier* const emptied = &shared.control().emptied[slot];
  const std::uint32_t lane = threadIdx.x % 32;
  if constexpr (kConfig.cluster == 1) {
    if (lane == 0) arrive(emptied);
  } else {
    if (lane < kConfig.cluster) arrive_at(emptied, first_of_pair<kConfig>() + lane);
  }
}

// Multiplies the ring's next slot, which has `Count` filled stages. Then releases slot `before`, if
// not negative, whose wgmmas are complete by then.
template <GemmConfig kConfig, int Count>
HP_DEVICE void multiply_slot(float (&sums)[kConfig.tile_m / 2],
                             const FewRowsShared<kConfig>& shared, int consumer,
                             Ring<kConfig.slots()>& ring, int& before) {
  constexpr int kBoxBytes = 64 * 128;
  constexpr std::uint64_t kStage = kConfig.stage_bytes() >> 4;  // in units of descriptors
  const char* const box = shared.b(ring.slot) + consumer * kBoxBytes;
  const std::uint64_t weights =
      uniform(kConfig.layout == GemmLayout::NMajor ? n_major(box, kBoxBytes) : k_major(box));
  const std::uint64_t rows = uniform(k_major(shared.a(ring.slot)));
  wait_barrier(&shared.control().filled[ring.slot], ring.parity);
  begin_wgmmas();
#pragma unroll
  for (int stage = 0; stage < Count; ++stage) {
    multiply_columns<kConfig>(sums, weights + stage * kStage, rows + stage * kStage);
  }
  commit_wgmmas();
  if (before >= 0) {
    wait_wgmmas<1>();
    release(shared, before);
  }
  before = ring.slot;
  ring.advance();
}

template <GemmConfig kConfig>
HP_DEVICE void multiply_stream(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                               int consumer, const StreamWalk& all) {
  Ring<kConfig.slots()> ring;
  Exchange<kConfig> exchange(shared, consumer, all.shares());
  for (StreamWalk walk = all; walk.valid(); walk.next()) {
    float sums[kConfig.tile_m / 2] = {};
    int before = -1;  // the slot to be released next; -1: none
    SlotWalk<kConfig> slot(walk);
    for (; slot.is_full(); slot.next()) {
      multiply_slot<kConfig, kConfig.slot_stages()>(sums, shared, consumer, ring, before);
    }
    if (slot.valid()) multiply_slot<kConfig, 1>(sums, shared, consumer, ring, before);
    wait_wgmmas<0>();
    pin(sums);
    // This thread block awaits no more signals.
    if (args.waits > 0 && args.has_addends == 0 && walk.is_last()) let_next_kernel_begin();
    if (before >= 0) release(shared, before);
    finish_columns<kConfig>(args, shared, walk, consumer, sums, exchange);
  }
  exchange.await_taken();  // the other blocks' arrivals must find this block's barrier alive
  if (args.has_addends != 0) store_with_addends<kConfig>(args, shared, all, consumer);
  if (args.bounds.ended != nullptr) {
    sync_threads(1 + consumer, 128);
    if (threadIdx.x % 128 == 0) end_bounds(args.wait, args.bounds);
  }
  if (threadIdx.x % 128 == 0) note_end(args.wait);
}

// By warp 0, which issues the first load: initialises the barriers, those of a slot in each lane.
template <GemmConfig kConfig>
HP_DEVICE void init_barriers(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                             int shares) {
  constexpr int kWarps = 4;
  static_assert(kConfig.slots() <= 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto& control = shared.control();
  if (lane < kConfig.slots()) {
    init_barrier(&control.filled[lane],
                 1 + (args.row_panels < kRowWarps ? args.row_panels : kRowWarps));
    init_barrier(&control.emptied[lane], kWarps * kConfig.consumers() * kConfig.cluster);
  }
  if (lane < kConfig.consumers()) {
    init_barrier(&control.sent[lane], 1);
    init_barrier(&control.taken[lane], kWarps * shares);
  }
  if (lane == 0) {
    init_barrier(&control.begun, 1);
    control.poisoned = 0;  // before the proxy fence, so that other thread blocks see it too
  }
  fence_barrier_init();
}

// Writes where the addends of panel `index` are into shared memory, and returns the place of the
// first among those of all panels.
template <GemmConfig kConfig>
HP_DEVICE int note_addends(const GemmArgs& args, const FewRowsShared<kConfig>& shared, int index) {
  int first = 0;
  for (int i = 0; i < index; ++i) first += panel_of(args, i).addends;
  const GemmPanel& panel = panel_of(args, index);
  for (int i = 0; i < panel.addends && first + i < kMostNotedAddends; ++i) {
    shared.control().addends[first + i] = addend_of(k_chunk_of(args, panel.first_addend + i));
  }
  return first;
}

// Warp 3, one lane per panel: writes what the epilogue needs of the panels into shared memory.
template <GemmConfig kConfig>
HP_DEVICE void note_panels(const GemmArgs& args, const FewRowsShared<kConfig>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool is_panel = lane < args.panel_count;
  const bool is_awaited = is_panel && panel_of(args, lane).done != nullptr;
  const bool is_counted = is_awaited && panel_of(args, lane).is_in_data == 0;
  const std::uint32_t awaited = __ballot_sync(0xffffffff, is_awaited);
  const std::uint32_t counted = __ballot_sync(0xffffffff, is_counted);
  if (lane == 0) {
    shared.control().awaited = awaited;
    shared.control().counted = counted;
  }
  if (!is_panel) return;
  const GemmPanel& panel = panel_of(args, lane);
  const int first_noted = panel.addends > 0 ? note_addends<kConfig>(args, shared, lane) : 0;
  const int rows_of = panel.rows_of < 0 ? lane : panel.rows_of;
  const OwnRows own = own_rows<kConfig>(args);
  int begin = -own.begin;
  for (int i = 0; i < rows_of; ++i) begin += rows_in_tile(panel_of(args, i));
  shared.control().panels[lane] = {.c = panel.c_address,
                                   .c_stride = panel.c_stride,
                                   .first_addend = panel.first_addend,
                                   .begin = static_cast<std::int16_t>(begin),
                                   .rows = static_cast<std::int16_t>(panel.rows),
                                   .addends = static_cast<std::int16_t>(panel.addends),
                                   .rows_of = static_cast<std::int8_t>(panel.rows_of),
                                   .is_in_data = static_cast<std::int8_t>(panel.is_in_data),
                                   .first_noted = static_cast<std::int16_t>(first_noted)};
  if (lane >= args.row_panels) return;
  const int end = min(begin + rows_in_tile(panel), own.end - own.begin);
  for (int row = max(begin, 0); row < end; row += GemmConfig::kRowAlign) {
    shared.control().panel_of[row / GemmConfig::kRowAlign] = static_cast<std::uint8_t>(lane);
  }
  if (lane == args.row_panels - 1) shared.control().rows_end = end;
}

// The first warp of a copying thread block; one thread copies, and the stages are its ring. It
// issues the first loads before the rank may store.
template <GemmConfig kConfig>
HP_DEVICE void copy_beside_rows(const GemmArgs& args, const FewRowsShared<kConfig>& shared) {
  static_assert(GemmConfig::kBarrierBytes + kCopySlots * kCopyGranule <= kConfig.shared_bytes());
  static_assert(kCopySlots * sizeof(Barrier) <= GemmConfig::kBarrierBytes);
  const bool is_copying = threadIdx.x == 0;
  auto* const filled = reinterpret_cast<Barrier*>(shared.base);
  CopyRun run(args.copies, args.copy_count, static_cast<int>(blockIdx.x), args.copy_blocks,
              shared.a(0), filled);
  if (is_copying) {
    for (int slot = 0; slot < kCopySlots; ++slot) init_barrier(&filled[slot], 1);
    fence_barrier_init();
  }
  await_kernel_before();
  if (is_copying) run.load_ahead();
  __syncwarp();
  const bool is_bounded = args.bounds.ended != nullptr;
  if (is_bounded) let_next_kernel_begin();
  const bool may_store = !is_bounded || begin_bounds(args.wait, args.bounds);
  if (!is_copying) return;
  note_begin(args.wait, true);
  Waiter waiter(args.wait);
  if (may_store) {
    run.finish(waiter);
  } else {
    run.give_up();
  }
  if (is_bounded) end_bounds(args.wait, args.bounds);
  note_end(args.wait);
}

// Warp 3: lets the consumers store once the panels' destinations are in shared memory and, where
// the kernel bounds executions, once it may overwrite what other ranks read in the previous one.
template <GemmConfig kConfig>
HP_DEVICE void let_store(const GemmArgs& args, const FewRowsShared<kConfig>& shared) {
  auto& control = shared.control();
  note_panels<kConfig>(args, shared);
  if (args.bounds.ended != nullptr) {
    await_kernel_before();
    if (!begin_bounds(args.wait, args.bounds)) mark_poisoned(control.poisoned);
  }
  __syncwarp();
  if (elected()) arrive(&control.begun);
}

// A warp of the producer warpgroup. If no kernel of the execution writes B, loads of B do not wait
// for the preceding kernel of the stream (PDL); all other accesses do.
template <GemmConfig kConfig>
HP_DEVICE void bring_operands(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                              const StreamWalk& walk, int warp) {
  if (warp == 0) {
    if (args.b_is_fixed == 0) await_kernel_before();
    if constexpr (kConfig.cluster > 1) await_cluster();
    if (!elected()) return;
    if (args.b_apart == 0) {
      load_weights<kConfig, LoadsAtOnce>(args, shared, walk);
    } else {
      load_weights<kConfig, PacedLoads>(args, shared, walk);
    }
    return;
  }
  if (warp == 3) let_store<kConfig>(args, shared);
  load_rows<kConfig>(args, shared, walk, warp);
}

// The whole kernel. The first args.copy_blocks thread blocks copy. Each cluster of the others is a
// stream, which its thread blocks, or pairs of them, share.
// `memory` is the dynamic shared memory: GemmConfig::shared_bytes bytes, aligned to 1,024.
template <GemmConfig kConfig>
HP_DEVICE void gemm_of_few_rows(const GemmArgs& args, char* memory) {
  static_assert(legal(kConfig));
  const FewRowsShared<kConfig> shared{memory};
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  if (static_cast<int>(blockIdx.x) < args.copy_blocks) {
    if (warp == 0) copy_beside_rows<kConfig>(args, shared);
    return;
  }
  const int block = (static_cast<int>(blockIdx.x) - args.copy_blocks) / kConfig.cluster;
  const StreamWalk walk(args.tiles, args.tile_blocks, block / args.stream_blocks, args.parts,
                        block % args.stream_blocks, args.stream_blocks);
  if (warp == 0) {
    prefetch_map(&args.b);
    init_barriers<kConfig>(args, shared, args.stream_blocks.number);
  }
  __syncwarp();
  announce_barriers();
  if (warp == 0) {
    arrive_threads(kConfig.consumers() + 1, kConfig.threads());  // loading B needs no other warp
  } else {
    sync_threads(kConfig.consumers() + 1, kConfig.threads());
  }
  if (warp < 4) {
    if constexpr (kConfig.deals_registers()) shrink_registers<kConfig.mover_registers()>();
    bring_operands<kConfig>(args, shared, walk, warp);
  } else {
    if constexpr (kConfig.deals_registers()) grow_registers<kConfig.consumer_registers()>();
    await_kernel_before();
    await_cluster();
    multiply_stream<kConfig>(args, shared, warp / 4 - 1, walk);
  }
}

}  // namespace harpe::device
