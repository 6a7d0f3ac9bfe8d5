#pragma once

#include "exec/cuda/device/copy.cuh"
#include "exec/cuda/device/ragged.cuh"
#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_store.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_walk.cuh"

// Persistent, warp-specialised C = A B for sm_90a (gemm_args.h says what it can wait for and where
// it can store). The first of three warpgroups is the producer: warp 3 acquires the flags of
// arriving operands, warp 0 loads stages of A and B by TMA once they have arrived, and warps 1 and
// 2 store boxes of C by TMA, one for each consumer. The other two warpgroups are the consumers. The
// thread blocks of a cluster compute tiles one above the other and load B by multicast.
namespace harpe::device {

// `first_row`: the row of the tensor map at which B begins.
template <GemmConfig kConfig, GemmLayout kLayout = kConfig.layout>
HP_DEVICE void load_b(const TensorMap* map, const GemmShared<kConfig>& shared, int stage, int n,
                      int k, int first_row = 0) {
  constexpr bool kRows = kLayout == GemmLayout::KMajor;  // of 64 values along K
  constexpr GemmConfig kLoaded = kRows ? kConfig : kConfig.for_addends();
  constexpr bool kSharesRows = kLoaded.shares_b_rows();
  // Columns that this thread block loads.
  constexpr int kShare = kConfig.tile_n / (kSharesRows ? 1 : kConfig.cluster);
  constexpr int kBoxes = kRows ? 1 : kShare / 64;
  Barrier* filled = &shared.control().filled[stage];
  const int in_cluster = kConfig.cluster == 1 ? 0 : static_cast<int>(block_in_cluster());
  const int first = kSharesRows ? 0 : in_cluster * kShare;
  const int first_k = kSharesRows ? in_cluster * kLoaded.b_box_rows() : 0;
#pragma unroll
  for (int box = 0; box < kBoxes; ++box) {
    const int column = first + box * 64;
    char* to = shared.b(stage) + (column + first_k) * 128;
    const int x = kRows ? k : n + column;
    const int y = first_row + (kRows ? n + column : k + first_k);
    if constexpr (kConfig.cluster == 1) {
      load_tile(to, map, filled, x, y);
    } else {
      load_tile_multicast(to, map, filled, x, y, (1 << kConfig.cluster) - 1);
    }
  }
}

// `k`: column within the K chunk that the map describes; `row`: row within its panel.
template <GemmConfig kConfig>
HP_DEVICE void load_a(const TensorMap* map, const GemmShared<kConfig>& shared, int stage, int k,
                      int row) {
  constexpr int kBoxBytes = 64 * GemmConfig::kTileK * 2;
  Barrier* filled = &shared.control().filled[stage];
  if constexpr (kConfig.m_major) {
#pragma unroll
    for (int box = 0; box < kConfig.tile_m / 64; ++box) {
      load_tile(shared.a(stage) + box * kBoxBytes, map, filled, row + box * 64, k);
    }
  } else {
    load_tile(shared.a(stage), map, filled, k, row);
  }
}

// Warp 3, one thread: acquires the flags in the order of their use, ahead of the loading warp, and
// releases their number through shared memory at block scope. Polling a flag in memory takes
// longer than a stage, so the loading warp reads the number instead.
template <GemmConfig kConfig>
HP_DEVICE void watch_arrivals(const GemmArgs& args, const GemmShared<kConfig>& shared,
                              GemmWalk<kConfig> walk) {
  auto& control = shared.control();
  Waiter waiter(args.wait);
  std::uint32_t arrived = 0;
  for (; walk.valid(); walk.next()) {
    for_each_piece(args, walk, [&](const GemmPiece& from, int piece, int, int) {
      if (from.ready.flag == nullptr) return;
      waiter.watch(from.ready, piece);
      if (waiter.poisoned()) mark_poisoned(control.poisoned);
      store_release_block(&control.arrived, ++arrived);
    });
  }
}

// One stage of an addend: its 64 rows from `k` on as B, with the identity's columns as A.
template <GemmConfig kConfig>
HP_DEVICE void load_addend(const GemmArgs& args, const GemmShared<kConfig>& shared,
                           const GemmWalk<kConfig>& walk, const TensorMap* map, int stage, int k) {
  const int in_cluster = kConfig.cluster == 1 ? 0 : static_cast<int>(block_in_cluster());
  const int first_row = in_cluster * kConfig.tile_m;
  load_b<kConfig, GemmLayout::NMajor>(map, shared, stage, walk.column(),
                                      walk.row() - first_row + k);
  load_tile(shared.a(stage), &args.identity, &shared.control().filled[stage], k, first_row);
}

// Whether warp 0 loads B before the preceding kernel of the stream has ended (PDL).
template <GemmConfig kConfig>
HP_DEVICE bool reads_b_ahead(const GemmArgs& args) {
  return !kConfig.groups && args.b_is_fixed != 0 && args.waits == 0;
}

// Whether the walk's tile is the panel's last and has fewer rows than a tile.
template <GemmConfig kConfig>
HP_DEVICE bool has_rest(const GemmWalk<kConfig>& walk, const GemmPiece& from) {
  return from.is_addend == 0 && walk.row() + kConfig.tile_m > walk.panel().rows;
}

// Bytes that TMA brings into a stage of the walk's tile.
template <GemmConfig kConfig>
HP_DEVICE std::uint32_t bytes_of_stage(const GemmWalk<kConfig>& walk, const GemmPiece& from) {
  const int a_bytes = has_rest(walk, from) ? from.rest_bytes : from.a_bytes;
  return static_cast<std::uint32_t>(kConfig.b_bytes() + a_bytes);
}

HP_DEVICE const TensorMap* b_of(const GemmArgs& args, const GemmPiece& piece) {
  return piece.has_b != 0 ? &piece.b : &args.b;
}

// Loads B of the first K blocks, at most one for each stage; returns their number.
template <GemmConfig kConfig>
HP_DEVICE int load_b_ahead(const GemmArgs& args, const GemmShared<kConfig>& shared,
                           const GemmWalk<kConfig>& walk) {
  Ring<kConfig.stages> ring;
  int ahead = 0;
  if (!walk.valid()) return 0;
  for_each_piece(args, walk, [&](const GemmPiece& from, int, int first, int last) {
    if (from.is_addend != 0) return;
    const std::uint32_t bytes = bytes_of_stage(walk, from);
    for (int block = first; block < last && ahead < kConfig.stages; ++block, ring.advance()) {
      arrive_expecting(&shared.control().filled[ring.slot], bytes);
      load_b<kConfig>(b_of(args, from), shared, ring.slot, walk.column(),
                      from.k_begin + block * GemmConfig::kTileK);
      ++ahead;
    }
  });
  return ahead;
}

// Warp 0, one thread: fills stage after stage. Rows of A beyond the end of a panel keep old data of
// the stage; their results are not stored. B that no kernel writes is loaded before A's flag is
// acquired; other B is loaded after it.
template <GemmConfig kConfig>
HP_DEVICE void load_stages(const GemmArgs& args, const GemmShared<kConfig>& shared,
                           GemmWalk<kConfig> walk) {
  auto& control = shared.control();
  int ahead = 0;
  if (reads_b_ahead<kConfig>(args)) {
    ahead = load_b_ahead<kConfig>(args, shared, walk);
    await_kernel_before();
  }
  if (args.waits == 0) let_next_kernel_begin();
  Ring<kConfig.stages> ring;
  std::uint32_t arrived = control.early;
  std::uint32_t needed = 0;
  for (; walk.valid(); walk.next()) {
    for_each_piece(args, walk, [&](const GemmPiece& from, int, int first, int last) {
      const auto load_b_at = [&](int k) {
        load_b<kConfig>(b_of(args, from), shared, ring.slot, walk.column(), from.k_begin + k);
      };
      const std::uint32_t bytes = bytes_of_stage(walk, from);
      const TensorMap* const rows = has_rest(walk, from) ? &from.rest : &from.map;
      const bool comes_late = from.ready.flag != nullptr && args.b_is_fixed == 0;
      if (from.ready.flag != nullptr) ++needed;
      for (int block = first; block < last; ++block, ring.advance()) {
        const int k = block * GemmConfig::kTileK;
        const bool is_addend = kConfig.takes_addends() && from.is_addend != 0;
        if (ahead > 0) {
          --ahead;
        } else {
          wait_barrier(&control.emptied[ring.slot], ring.parity ^ 1);
          arrive_expecting(&control.filled[ring.slot], bytes);
          if (!is_addend && !comes_late) load_b_at(k);
        }
        if (arrived < needed) {
          note_awaited(args.wait, from.ready);
          const auto last = ring.before();
          note_idle(
              args.wait, [&] { return is_over(&control.emptied[last.slot], last.parity); },
              [&] {
                arrived = load_acquire_block(&control.arrived);
                return arrived >= needed;
              });
          while (arrived < needed) arrived = load_acquire_block(&control.arrived);
          note_stand(args.wait);
          fence_proxy_async();
        }
        if (is_addend) {
          load_addend<kConfig>(args, shared, walk, &from.map, ring.slot, k);
        } else {
          if (comes_late) load_b_at(k);
          load_a<kConfig>(rows, shared, ring.slot, k, walk.row());
        }
      }
    });
  }
  if (args.waits > 0) let_next_kernel_begin();  // this block awaits no more signals
}

// The same for groups, which wait for no flag. Where a group's last tile has fewer chunks, its
// first chunk is loaded in their place; their results are not stored.
template <GemmConfig kConfig>
HP_DEVICE void load_group_stages(const GemmArgs& args, const GemmShared<kConfig>& shared,
                                 GemmWalk<kConfig> walk) {
  constexpr int kChunkBytes = kConfig.chunk_rows() * GemmConfig::kTileK * 2;
  auto& control = shared.control();
  const GemmPiece* const pieces = args.pieces == nullptr ? args.few_pieces : args.pieces;
  Ring<kConfig.stages> ring;
  for (; walk.valid(); walk.next()) {
    GroupChunk chunks[GemmConfig::kChunks];
#pragma unroll
    for (int i = 0; i < GemmConfig::kChunks; ++i) {
      chunks[i] = walk.chunk(i);
      if (chunks[i].panel < 0) chunks[i] = chunks[0];
    }
    const int first_row = walk.panel().b_first;
    for (int block = 0; block < walk.blocks(); ++block, ring.advance()) {
      const int k = block * GemmConfig::kTileK;
      Barrier* const filled = &control.filled[ring.slot];
      wait_barrier(&control.emptied[ring.slot], ring.parity ^ 1);
      arrive_expecting(filled, kConfig.stage_bytes());
      load_b<kConfig>(&args.b, shared, ring.slot, walk.column(), k, first_row);
#pragma unroll
      for (int i = 0; i < GemmConfig::kChunks; ++i) {
        load_tile(shared.a(ring.slot) + i * kChunkBytes, &pieces[chunks[i].panel].map, filled, k,
                  chunks[i].row);
      }
    }
  }
}

// One thread, before the block's start barrier: acquires the first flag if it is up already.
template <GemmConfig kConfig>
HP_DEVICE void look_early(const GemmArgs& args, const GemmShared<kConfig>& shared,
                          const GemmWalk<kConfig>& walk) {
  bool here = false;
  if (args.waits > 0 && walk.valid()) {
    const GemmPiece& from = piece_of(args, walk.panel().first_piece);
    Waiter waiter(args.wait);
    here = from.ready.flag != nullptr && walk.unit().part == 0 && waiter.look(from.ready, 0);
  }
  shared.control().early = here ? 1 : 0;
}

// One wgmma: 64 rows of A by kColumns columns of B.
template <int kColumns, GemmConfig kConfig, GemmLayout kLayout>
HP_DEVICE void multiply(float (&sums)[kColumns / 2], std::uint64_t rows, std::uint64_t columns,
                        bool accumulate) {
  using Product = Wgmma<kColumns, kConfig.in, kLayout == GemmLayout::NMajor>;
  if constexpr (kConfig.m_major) {
    Product::multiply_transposed(sums, rows, columns, accumulate);
  } else {
    Product::multiply(sums, rows, columns, accumulate);
  }
}

// One stage for one consumer's rows: four steps of 16 along K.
template <GemmConfig kConfig, GemmLayout kLayout>
HP_DEVICE void multiply_stage(float (&sums)[kConfig.slices()][kConfig.tile_n / 2],
                              const GemmShared<kConfig>& shared, int stage, int consumer,
                              bool accumulate) {
  constexpr bool kNMajor = kLayout == GemmLayout::NMajor;
  constexpr int kRowBytes = GemmConfig::kTileK * 2;
  constexpr int kFirst = kConfig.product_columns();
  constexpr int kRest = kConfig.tile_n - kFirst;
  const int first_row = kConfig.ping_pong ? 0 : consumer * kConfig.block_m();
  char* const first_a = shared.a(stage) + first_row * kRowBytes;  // holds for m_major boxes too
  const std::uint64_t a = kConfig.m_major ? n_major(first_a, 64 * kRowBytes) : k_major(first_a);
  const std::uint64_t b =
      kNMajor ? n_major(shared.b(stage), 64 * kRowBytes) : k_major(shared.b(stage));
  begin_products();
#pragma unroll
  for (int step = 0; step < GemmConfig::kTileK / 16; ++step) {
#pragma unroll
    for (int slice = 0; slice < kConfig.slices(); ++slice) {
      const bool adds = accumulate || step != 0;
      const std::uint64_t rows =
          a + slice * (64 * kRowBytes >> 4) + step * (kConfig.m_major ? kNMajorStep : kKMajorStep);
      const std::uint64_t columns = b + step * (kNMajor ? kNMajorStep : kKMajorStep);
      multiply<kFirst, kConfig, kLayout>(part<0, kFirst / 2>(sums[slice]), rows, columns, adds);
      if constexpr (kRest > 0) {
        multiply<kRest, kConfig, kLayout>(part<kFirst / 2, kRest / 2>(sums[slice]), rows,
                                          columns + (kFirst * kRowBytes >> 4), adds);
      }
    }
  }
  commit_products();
}

// A consumer warp has read the stage: arrives at its `emptied` barrier in every thread block of the
// cluster, since each of them loads a part of B into this block's stage.
template <GemmConfig kConfig>
HP_DEVICE void release_stage(const GemmShared<kConfig>& shared, int stage) {
  const int lane = threadIdx.x % 32;
  if constexpr (kConfig.cluster == 1) {
    if (lane == 0) arrive(&shared.control().emptied[stage]);
  } else {
    if (lane < kConfig.cluster) arrive_at(&shared.control().emptied[stage], lane);
  }
}

// Consumer warpgroup `consumer`: computes its blocks of C and passes them to the epilogue.
template <GemmConfig kConfig>
HP_DEVICE void multiply_tiles(const GemmArgs& args, const GemmShared<kConfig>& shared,
                              int consumer) {
  constexpr int kTurn = 3;  // named barriers: 1 and 2 belong to hand_on
  Ring<kConfig.stages> ring;
  Ring<kConfig.boxes> boxes;
  if (kConfig.ping_pong && consumer == 1) arrive_threads(kTurn, 256);
  for (GemmWalk<kConfig> walk(args, shared.rows()); walk.valid(); walk.next()) {
    if (!walk.mine(consumer)) {
      ring.advance(walk.blocks());
      continue;
    }
    float sums[kConfig.slices()][kConfig.tile_n / 2];
    // K blocks from `products` on are addends; unlike KMajor B they have rows along N.
    constexpr bool kTurns = kConfig.takes_addends() && kConfig.layout == GemmLayout::KMajor;
    const int products = walk.panel().products - walk.first_block();
    int before = 0;
    if constexpr (kConfig.ping_pong) sync_threads(kTurn + consumer, 256);
    for (int block = 0; block < walk.blocks(); ++block, ring.advance()) {
      wait_barrier(&shared.control().filled[ring.slot], ring.parity);
      // A parity wait cannot tell phases that are two apart. So the other consumer waits for its
      // first stage only once this one's last stage is filled.
      if (kConfig.ping_pong && block + 1 == walk.blocks()) {
        arrive_threads(kTurn + (consumer ^ 1), 256);
      }
      // The shuffle makes the slot warp-uniform for the compiler. Descriptors then stay in uniform
      // registers, and no moves separate consecutive wgmmas.
      const int stage = __shfl_sync(0xffffffff, ring.slot, 0);
      if (kTurns && block >= products) {
        multiply_stage<kConfig, GemmLayout::NMajor>(sums, shared, stage, consumer, block != 0);
      } else {
        multiply_stage<kConfig, kConfig.layout>(sums, shared, stage, consumer, block != 0);
      }
      if (block != 0) {
        wait_products<1>();
        release_stage<kConfig>(shared, before);
      }
      before = ring.slot;
    }
    wait_products<0>();
#pragma unroll
    for (int slice = 0; slice < kConfig.slices(); ++slice) pin(sums[slice]);
    release_stage<kConfig>(shared, before);
    hand_on<kConfig>(args, shared, walk, consumer, sums, boxes);
  }
}

// By the loading thread: initialises the barriers of stages.
template <GemmConfig kConfig>
HP_DEVICE void init_stages(const GemmShared<kConfig>& shared) {
  auto& control = shared.control();
  constexpr int kWarps = 4;
  constexpr int kReaders = kConfig.ping_pong ? 1 : GemmConfig::kConsumers;
#pragma unroll
  for (int stage = 0; stage < kConfig.stages; ++stage) {
    init_barrier(&control.filled[stage], 1);
    init_barrier(&control.emptied[stage], kWarps * kReaders * kConfig.cluster);
  }
  fence_barrier_init();
}

// By one warp: initialises the barriers of boxes, one in each lane.
template <GemmConfig kConfig>
HP_DEVICE void init_boxes(const GemmShared<kConfig>& shared) {
  auto& control = shared.control();
  constexpr int kWarps = 4;
  static_assert(GemmConfig::kConsumers * kConfig.boxes <= 32);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane < GemmConfig::kConsumers * kConfig.boxes) {
    init_barrier(&control.staged[0][0] + lane, kWarps);
    init_barrier(&control.stored[0][0] + lane, 1);
    (&control.skipped[0][0])[lane] = 0;
  }
  if (lane == 0) control.poisoned = control.arrived = 0;
  fence_barrier_init();
}

// Groups, by the whole thread block: reads each panel's rows in use into shared memory.
template <GemmConfig kConfig>
HP_DEVICE void count_rows(const GemmArgs& args, const GemmShared<kConfig>& shared) {
  for (int i = static_cast<int>(threadIdx.x); i < args.panel_count; i += GemmConfig::kThreads) {
    const GemmPanel& panel = panel_of(args, i);
    const bool begins = i == 0 || panel.b_first != panel_of(args, i - 1).b_first;
    shared.rows().set(i, used_of(panel.used, panel.rows), begins);
    if (blockIdx.x == 0) take_over(panel.used);
  }
  __syncthreads();
}

// One thread of a copying block: the shared memory of stages and boxes is the ring of granules.
template <GemmConfig kConfig>
HP_DEVICE void copy_granules(const GemmArgs& args, const GemmShared<kConfig>& shared) {
  static_assert(kCopySlots <= kConfig.stages + GemmConfig::kConsumers * kConfig.boxes);
  static_assert(kCopySlots * kCopyGranule + GemmConfig::kBarrierBytes <= kConfig.shared_bytes());
  auto* filled = reinterpret_cast<Barrier*>(shared.base);
  for (int slot = 0; slot < kCopySlots; ++slot) init_barrier(&filled[slot], 1);
  fence_barrier_init();
  Waiter waiter(args.wait);
  CopyRun(args.copies, args.copy_count, static_cast<int>(blockIdx.x), args.copy_blocks, shared.a(0),
          filled)
      .finish(waiter);
}

// By a whole warp whose threads store or copy, before they do. Where the kernel bounds the
// execution, waits until the rank may store.
HP_DEVICE void begin_stores(const GemmArgs& args, bool raises) {
  if (args.bounds.epoch != nullptr) begin_bounds(args.wait, args.bounds, raises);
}

// By a thread after its stores or copies are complete, not only read.
HP_DEVICE void end_stores(const GemmArgs& args) {
  if (args.bounds.epoch != nullptr) {
    fence_proxy_async();
    end_bounds(args.wait, args.bounds);
  }
  note_end(args.wait);
}

// One thread of each warp of the producer warpgroup.
template <GemmConfig kConfig>
HP_DEVICE void move_data(const GemmArgs& args, const GemmShared<kConfig>& shared,
                         const GemmWalk<kConfig>& walk, bool copies, int warp) {
  if (copies) {
    if constexpr (kConfig.copies) {
      if (warp == 0) {
        copy_granules<kConfig>(args, shared);
        end_stores(args);
      }
    }
  } else if (warp == 3) {
    if (args.waits > 0) watch_arrivals<kConfig>(args, shared, walk);
  } else if (warp > 0) {
    if constexpr (in_bulk(kConfig.store)) {
      store_boxes<kConfig>(args, shared, walk, warp - 1);
      end_stores(args);
    }
  } else if constexpr (kConfig.groups) {
    let_next_kernel_begin();
    load_group_stages<kConfig>(args, shared, walk);
  } else {
    load_stages<kConfig>(args, shared, walk);
  }
}

// The whole kernel. The first args.copy_blocks thread blocks copy, the others compute tiles.
// `memory` is the dynamic shared memory: GemmConfig::shared_bytes bytes, aligned to 1,024.
template <GemmConfig kConfig>
HP_DEVICE void gemm(const GemmArgs& args, char* memory) {
  static_assert(legal(kConfig));
  constexpr int kBegun = 5;  // named barrier; consumers use 1 to 4
  const GemmShared<kConfig> shared{memory};
  const bool copies = kConfig.copies && static_cast<int>(blockIdx.x) < args.copy_blocks;
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  // The setup is spread over warps, so that the loading warp reaches its first load early.
  if (warp == 0 && !copies && elected()) init_stages<kConfig>(shared);
  if (warp == 1 && elected()) {
    prefetch_map(&args.b);
    prefetch_map(&piece_of(args, 0).map);
  }
  if (warp == 3 && !copies) init_boxes<kConfig>(shared);
  // Orders barrier initialisation before arrivals of the cluster's other thread blocks.
  __syncwarp();
  if constexpr (kConfig.cluster > 1) arrive_in_cluster();
  const bool reads_ahead = reads_b_ahead<kConfig>(args);
  if (!reads_ahead) await_kernel_before();
  if constexpr (kConfig.groups) count_rows<kConfig>(args, shared);
  const GemmWalk<kConfig> walk(args, shared.rows());
  if (warp == 1 && !copies && elected()) look_early<kConfig>(args, shared, walk);
  if (warp == 2 && elected()) {
    if (in_bulk(kConfig.store)) prefetch_map(&panel_of(args, 0).c);
  }
  // If the kernel awaits no flag, the loading warp uses nothing that the other warps set up.
  if (warp == 0 && args.waits == 0) {
    arrive_threads(kBegun, kConfig.threads());
  } else {
    sync_threads(kBegun, kConfig.threads());
  }
  if constexpr (kConfig.cluster > 1) await_cluster();
  if (reads_ahead && (warp != 0 || copies)) await_kernel_before();
  if (warp == 2 && elected()) note_begin(args.wait, copies);
  // In this order the compiler places the load code first, where it is fetched soonest.
  if (warp >= 4) {
    grow_registers<kConfig.consumer_registers()>();
    if (!copies) {
      constexpr bool kStores = !in_bulk(kConfig.store);
      if (kStores) begin_stores(args, warp == 4);
      multiply_tiles<kConfig>(args, shared, warp / 4 - 1);
      if (kStores && args.bounds.epoch != nullptr) sync_threads(warp / 4, 128);
      if (kStores && threadIdx.x % 128 == 0) end_stores(args);
    }
  } else {
    shrink_registers<kConfig.mover_registers()>();
    const bool stores = copies ? warp == 0 : in_bulk(kConfig.store) && (warp == 1 || warp == 2);
    if (stores) begin_stores(args, copies || warp == 1);
    if (elected()) move_data<kConfig>(args, shared, walk, copies, warp);
    __syncwarp();
  }
  // No thread block exits while another may still write to its shared memory.
  if constexpr (kConfig.cluster > 1) sync_cluster();
}

}  // namespace harpe::device
