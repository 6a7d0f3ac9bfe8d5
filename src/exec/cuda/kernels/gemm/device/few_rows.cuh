#pragma once

#include "exec/cuda/device/copy.cuh"
#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/gemm/device/few_rows_store.cuh"

// C = A B for so few rows of A (up to 128 of all panels) that reading B decides: a tile has all
// rows, columns of B are the rows of the tensor cores' products, and blocks stream through equal
// shares of B (few_rows_order.h). Of a block's first warpgroup warp 0 loads B, as far ahead as
// stages are free, and the others the rows of A, once they have arrived, a lane for each panel;
// each of the other warpgroups multiplies 64 columns.
namespace harpe::device {

// Warp 0, one thread.
template <GemmConfig kConfig>
HP_DEVICE void load_weights(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                            StreamWalk walk) {
  constexpr bool kRows = kConfig.layout == GemmLayout::KMajor;  // of 64 values along K
  auto& control = shared.control();
  Ring<kConfig.stages> ring;
  for (; walk.valid(); walk.next()) {
    const int column = walk.tile() * kConfig.tile_n;
    for (int block = walk.own_first(); block < walk.own_last(); ++block, ring.advance()) {
      const int k = block * GemmConfig::kTileK;
      Barrier* const filled = &control.filled[ring.slot];
      wait_barrier(&control.emptied[ring.slot], ring.parity ^ 1);
      arrive_expecting(filled, kConfig.b_bytes());
      if constexpr (kRows) {
        load_tile_once(shared.b(ring.slot), &args.b, filled, k, column);
      } else {
#pragma unroll
        for (int at = 0; at < kConfig.tile_n; at += 64) {
          load_tile_once(shared.b(ring.slot) + at * 128, &args.b, filled, column + at, k);
        }
      }
    }
  }
}

// Warps 1 to 3 share the panels out, a lane for each: lanes of one warp would load one after the
// other.
template <GemmConfig kConfig>
HP_DEVICE void load_rows(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                         StreamWalk walk, int warp) {
  constexpr int kWarps = 3;
  const int own = static_cast<int>(threadIdx.x) % 32 * kWarps + warp - 1;  // panel
  if (own >= args.row_panels) return;
  auto& control = shared.control();
  int first_row = 0;  // of the tile
  for (int i = 0; i < own; ++i) first_row += rows_in_tile(panel_of(args, i));
  constexpr int kRowBytes = GemmConfig::kTileK * 2;
  const auto bytes = static_cast<std::uint32_t>(rows_in_tile(panel_of(args, own)) * kRowBytes);
  const int first_piece = panel_of(args, own).first_piece;
  prefetch_map(&piece_of(args, first_piece).map);
  await_kernel_before();
  if (own == 0) {
    note_begin(args.wait, false);
    if (args.waits == 0) let_next_kernel_begin();
  }
  Waiter waiter(args.wait);
  Ring<kConfig.stages> ring;
  for (; walk.valid(); walk.next()) {
    const GemmPiece* from = nullptr;
    int piece = first_piece;
    int begin = 0;
    int end = 0;  // of the piece
    for (int block = walk.own_first(); block < walk.own_last(); ++block, ring.advance()) {
      const int k = block * GemmConfig::kTileK;
      Barrier* const filled = &control.filled[ring.slot];
      wait_barrier(&control.emptied[ring.slot], ring.parity ^ 1);
      arrive_expecting(filled, bytes);
      if (k >= end) {
        if (from != nullptr) ++piece;
        for (from = &piece_of(args, piece); k >= from->k_begin + from->k_count;) {
          from = &piece_of(args, ++piece);
        }
        begin = from->k_begin;
        end = begin + from->k_count;
        const auto last = ring.before();
        waiter.wait(from->ready, piece,
                    [&] { return is_over(&control.emptied[last.slot], last.parity); });
        if (waiter.poisoned()) mark_poisoned(control.poisoned);
      }
      load_tile(shared.a(ring.slot) + first_row * kRowBytes, &from->map, filled, k - begin, 0);
    }
  }
}

// One stage of one consumer's columns: four steps of 16 along K.
template <GemmConfig kConfig>
HP_DEVICE void multiply_columns(float (&sums)[kConfig.tile_m / 2],
                                const FewRowsShared<kConfig>& shared, int stage, int consumer) {
  constexpr bool kNMajor = kConfig.layout == GemmLayout::NMajor;
  constexpr int kBoxBytes = 64 * 128;
  const char* const box = shared.b(stage) + consumer * kBoxBytes;
  const std::uint64_t weights = kNMajor ? n_major(box, kBoxBytes) : k_major(box);
  const std::uint64_t rows = k_major(shared.a(stage));
  using Product = Wgmma<kConfig.tile_m, kConfig.in, false>;
  begin_products();
#pragma unroll
  for (int step = 0; step < GemmConfig::kTileK / 16; ++step) {
    if constexpr (kNMajor) {
      Product::multiply_transposed(sums, weights + step * kNMajorStep, rows + step * kKMajorStep,
                                   true);
    } else {
      Product::multiply(sums, weights + step * kKMajorStep, rows + step * kKMajorStep, true);
    }
  }
  commit_products();
}

template <GemmConfig kConfig>
HP_DEVICE void multiply_stream(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                               int consumer, const StreamWalk& all) {
  auto& control = shared.control();
  const auto release = [&](int stage) {
    if (threadIdx.x % 32 == 0) arrive(&control.emptied[stage]);
  };
  Ring<kConfig.stages> ring;
  Exchange<kConfig> exchange(shared, consumer, all.shares());
  for (StreamWalk walk = all; walk.valid(); walk.next()) {
    float sums[kConfig.tile_m / 2] = {};
    int before = 0;
    for (int block = walk.own_first(); block < walk.own_last(); ++block, ring.advance()) {
      wait_barrier(&control.filled[ring.slot], ring.parity);
      // Said to be the same in all lanes: what describes operands stays in uniform registers.
      const int stage = __shfl_sync(0xffffffff, ring.slot, 0);
      multiply_columns<kConfig>(sums, shared, stage, consumer);
      if (block != walk.own_first()) {
        wait_products<1>();
        release(before);
      }
      before = ring.slot;
    }
    wait_products<0>();
    pin(sums);
    // Nothing is awaited any more but addends.
    if (args.waits > 0 && args.has_addends == 0 && walk.is_last()) let_next_kernel_begin();
    if (walk.own_first() != walk.own_last()) release(before);
    finish_columns<kConfig>(args, shared, walk, consumer, sums, exchange);
  }
  exchange.await_taken();  // others may read what is staged here
  if (args.has_addends != 0) store_with_addends<kConfig>(args, shared, all, consumer);
  if (args.bounds.epoch != nullptr) {
    sync_threads(1 + consumer, 128);
    if (threadIdx.x % 128 == 0) end_bounds(args.wait, args.bounds);
  }
  if (threadIdx.x % 128 == 0) note_end(args.wait);
}

// Warp 0, one thread.
template <GemmConfig kConfig>
HP_DEVICE void init_barriers(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                             int shares) {
  constexpr int kWarps = 4;
  auto& control = shared.control();
#pragma unroll
  for (int stage = 0; stage < kConfig.stages; ++stage) {
    init_barrier(&control.filled[stage], 1 + args.row_panels);
    init_barrier(&control.emptied[stage], kWarps * kConfig.consumers());
  }
#pragma unroll
  for (int consumer = 0; consumer < kConfig.consumers(); ++consumer) {
    init_barrier(&control.staged[consumer], kWarps * shares);
    init_barrier(&control.taken[consumer], kWarps * shares);
  }
  init_barrier(&control.begun, 1);
  fence_barrier_init();
  control.poisoned = 0;
}

// Warp 3, a lane for each panel.
template <GemmConfig kConfig>
HP_DEVICE void note_panels(const GemmArgs& args, const FewRowsShared<kConfig>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool is_panel = lane < args.panel_count;
  const bool is_awaited = is_panel && panel_of(args, lane).done != nullptr;
  const std::uint32_t awaited = __ballot_sync(0xffffffff, is_awaited);
  if (lane == 0) shared.control().awaited = awaited;
  if (!is_panel) return;
  const GemmPanel& panel = panel_of(args, lane);
  const int rows_of = panel.rows_of < 0 ? lane : panel.rows_of;
  int begin = 0;
  for (int i = 0; i < rows_of; ++i) begin += rows_in_tile(panel_of(args, i));
  shared.control().panels[lane] = {.c = panel.c_address,
                                   .c_stride = panel.c_stride,
                                   .begin = begin,
                                   .rows = panel.rows,
                                   .addends = panel.addends,
                                   .first_addend = panel.first_addend,
                                   .rows_of = panel.rows_of,
                                   .is_in_data = panel.is_in_data};
  if (lane == args.row_panels - 1) {
    shared.control().rows_end = begin + rows_in_tile(panel);
  }
}

// One thread: stages are its ring.
template <GemmConfig kConfig>
HP_DEVICE void run_copies_beside_rows(const GemmArgs& args, const FewRowsShared<kConfig>& shared) {
  static_assert(GemmConfig::kBarrierBytes + kCopySlots * kCopyGranule <= kConfig.shared_bytes());
  static_assert(kCopySlots * sizeof(Barrier) <= GemmConfig::kBarrierBytes);
  auto* const filled = reinterpret_cast<Barrier*>(shared.base);
  for (int slot = 0; slot < kCopySlots; ++slot) init_barrier(&filled[slot], 1);
  fence_barrier_init();
  Waiter waiter(args.wait);
  run_copies(args.copies, args.copy_count, static_cast<int>(blockIdx.x), args.copy_blocks, waiter,
             shared.a(0), filled);
}

// The first warp of a block that copies.
template <GemmConfig kConfig>
HP_DEVICE void copy_beside_rows(const GemmArgs& args, const FewRowsShared<kConfig>& shared) {
  await_kernel_before();
  const bool is_bounded = args.bounds.epoch != nullptr;
  const bool may_store = !is_bounded || begin_bounds(args.wait, args.bounds);
  if (!elected()) return;
  note_begin(args.wait, true);
  if (may_store) run_copies_beside_rows<kConfig>(args, shared);
  if (is_bounded) end_bounds(args.wait, args.bounds);
  note_end(args.wait);
}

// Warp 3: lets the others store once it is known where to, and, where the kernel bounds the
// execution, once this one may write where others read in the one before.
template <GemmConfig kConfig>
HP_DEVICE void let_store(const GemmArgs& args, const FewRowsShared<kConfig>& shared) {
  auto& control = shared.control();
  note_panels<kConfig>(args, shared);
  if (args.bounds.epoch != nullptr) {
    await_kernel_before();
    if (!begin_bounds(args.wait, args.bounds)) mark_poisoned(control.poisoned);
  }
  __syncwarp();
  if (elected()) arrive(&control.begun);
}

// A warp of the first warpgroup. B is what no kernel of the execution writes, or waits as all does
// for the kernel before.
template <GemmConfig kConfig>
HP_DEVICE void bring_operands(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                              const StreamWalk& walk, int warp) {
  if (warp == 0) {
    if (args.b_is_fixed == 0) await_kernel_before();
    if (elected()) load_weights<kConfig>(args, shared, walk);
    return;
  }
  if (warp == 3) let_store<kConfig>(args, shared);
  load_rows<kConfig>(args, shared, walk, warp);
}

// The whole kernel. The first args.copy_blocks blocks copy, the others are streams, a cluster each.
// `memory` is the dynamic shared memory: GemmConfig::shared_bytes of it, aligned to 1,024.
template <GemmConfig kConfig>
HP_DEVICE void gemm_of_few_rows(const GemmArgs& args, char* memory) {
  static_assert(legal(kConfig));
  const FewRowsShared<kConfig> shared{memory};
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  if (static_cast<int>(blockIdx.x) < args.copy_blocks) {
    if (warp == 0) copy_beside_rows<kConfig>(args, shared);
    return;
  }
  const auto shares = static_cast<int>(blocks_of_cluster());
  const int block = static_cast<int>(blockIdx.x) - args.copy_blocks;
  const StreamWalk walk(args.tiles, args.full_tiles, block / shares, args.parts, block % shares,
                        shares);
  if (warp == 0 && elected()) {
    prefetch_map(&args.b);
    init_barriers<kConfig>(args, shared, shares);
  }
  __syncwarp();
  // Other blocks arrive at this block's barriers only once they are made.
  arrive_in_cluster();
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
