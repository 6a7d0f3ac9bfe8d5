#pragma once

#include "exec/cuda/device/copy.cuh"
#include "exec/cuda/device/ragged.cuh"
#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_exchange.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_load.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_store.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_walk.cuh"

// Persistent, warp-specialised C = A B for sm_90a (gemm_args.h says what it can wait for and where
// it can store). The first of three warpgroups is the producer: warp 3 acquires the flags of
// arriving operands, warp 0 loads stages of A and B by TMA once they have arrived, and warps 1 and
// 2 store boxes of C by TMA, one for each consumer. The other two warpgroups are the consumers. The
// thread blocks of a cluster compute tiles one above the other and load B by multicast.
namespace harpe::device {

// One wgmma: 64 rows of one operand by kColumns columns of the other.
template <int kColumns, Element kIn, bool kMMajor, bool kNMajor>
HP_DEVICE void multiply(float (&sums)[kColumns / 2], std::uint64_t rows, std::uint64_t columns,
                        bool accumulate) {
  using Product = Wgmma<kColumns, kIn, kNMajor>;
  if constexpr (kMMajor) {
    Product::multiply_transposed(sums, rows, columns, accumulate);
  } else {
    Product::multiply(sums, rows, columns, accumulate);
  }
}

// One stage for one consumer's slices: four steps of 16 along K. The rows of a wgmma are rows of A,
// or, if `swapped`, columns of B.
template <GemmConfig kConfig, GemmLayout kLayout>
HP_DEVICE void multiply_stage(GemmSums<kConfig>& sums, const GemmShared<kConfig>& shared, int stage,
                              int consumer, bool accumulate) {
  constexpr bool kBNMajor = kLayout == GemmLayout::NMajor;
  constexpr bool kMMajor = kConfig.swapped ? kBNMajor : kConfig.m_major;
  constexpr bool kNMajor = kBNMajor && !kConfig.swapped;
  constexpr int kValueBytes = GemmConfig::kTileK * 2;  // of a row or column in a stage
  constexpr int kSliceBytes = 64 * kValueBytes;
  constexpr int kBox = kConfig.box_columns();
  constexpr int kFirst = kConfig.wgmma_columns();
  constexpr int kRest = kConfig.slice_sums() * 2 - kFirst;
  constexpr std::uint64_t kRowStep = kMMajor ? kNMajorStep : kKMajorStep;
  constexpr std::uint64_t kColumnStep = kNMajor ? kNMajorStep * kBox / 64 : kKMajorStep;
  const int own = kConfig.ping_pong ? 0 : consumer * kConfig.slices();
  const char* const of_rows =
      (kConfig.swapped ? shared.b(stage) : shared.a(stage)) + own * kSliceBytes;
  const char* const of_columns = kConfig.swapped ? shared.a(stage) : shared.b(stage);
  const std::uint64_t first_rows = kMMajor ? n_major(of_rows, kSliceBytes) : k_major(of_rows);
  const std::uint64_t first_columns =
      kNMajor ? n_major<kBox>(of_columns, kBox * kValueBytes) : k_major(of_columns);
  begin_wgmmas();
#pragma unroll
  for (int step = 0; step < GemmConfig::kTileK / 16; ++step) {
#pragma unroll
    for (int slice = 0; slice < kConfig.slices(); ++slice) {
      const bool adds = accumulate || step != 0;
      const std::uint64_t rows = first_rows + slice * (kSliceBytes >> 4) + step * kRowStep;
      const std::uint64_t columns = first_columns + step * kColumnStep;
      multiply<kFirst, kConfig.in, kMMajor, kNMajor>(part<0, kFirst / 2>(sums[slice]), rows,
                                                     columns, adds);
      if constexpr (kRest > 0) {
        multiply<kRest, kConfig.in, kMMajor, kNMajor>(part<kFirst / 2, kRest / 2>(sums[slice]),
                                                      rows, columns + (kFirst * kValueBytes >> 4),
                                                      adds);
      }
    }
  }
  commit_wgmmas();
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

// Consumer warpgroup `consumer`: computes its blocks of C and passes each to the epilogue, as
// finish(walk, the stage of its last K block, sums).
template <GemmConfig kConfig, class Finish>
HP_DEVICE void multiply_tiles(const GemmArgs& args, const GemmShared<kConfig>& shared, int consumer,
                              Finish finish) {
  constexpr int kTurn = 3;  // named barriers: 1 and 2 belong to the epilogue
  Ring<kConfig.stages> ring;
  GemmSums<kConfig> sums;  // here, so that stage_part can leave their registers to the compiler
  if (kConfig.ping_pong && consumer == 1) arrive_threads(kTurn, 256);
  for (GemmWalk<kConfig> walk(args, shared.rows()); walk.locate(); walk.next()) {
    if (!walk.mine(consumer)) {
      ring.advance(walk.blocks());
      continue;
    }
    // K blocks from `products` on are addends; unlike KMajor B they have rows along N.
    constexpr bool kTurns =
        kConfig.takes_addends() && !kConfig.by_threads && kConfig.layout == GemmLayout::KMajor;
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
        wait_wgmmas<1>();
        release_stage<kConfig>(shared, before);
      }
      before = ring.slot;
    }
    wait_wgmmas<0>();
#pragma unroll
    for (int slice = 0; slice < kConfig.slices(); ++slice) pin(sums[slice]);
    if constexpr (kConfig.boxes_in_stage) {
      sync_threads(kTurn, 256);  // both consumers have read the stage; its boxes' store releases it
    } else {
      release_stage<kConfig>(shared, before);
    }
    finish(walk, before, sums);
  }
}

// By one thread, that of the first loads: initialises the barriers that they complete.
template <GemmConfig kConfig>
HP_DEVICE void init_filled(const GemmShared<kConfig>& shared) {
#pragma unroll
  for (int stage = 0; stage < kConfig.stages; ++stage) {
    init_barrier(&shared.control().filled[stage], 1);
  }
  fence_barrier_init();
}

// By one thread: initialises the other barriers of stages.
template <GemmConfig kConfig>
HP_DEVICE void init_emptied(const GemmShared<kConfig>& shared) {
  auto& control = shared.control();
  constexpr int kWarps = 4;
  constexpr int kReaders = kConfig.ping_pong ? 1 : GemmConfig::kConsumers;
#pragma unroll
  for (int stage = 0; stage < kConfig.stages; ++stage) {
    init_barrier(&control.emptied[stage], kWarps * kReaders * kConfig.cluster);
  }
  init_barrier(&control.begun, 1);
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
  if (lane == 0) {
    control.poisoned = control.arrived = 0;
    if constexpr (kConfig.by_threads) init_barrier(&control.may_store, 1);
  }
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

// Where few jobs lie in a copying block's shared memory, behind its barriers.
HP_DEVICE CopyJob* few_jobs_at(char* base) {
  return reinterpret_cast<CopyJob*>(base + GemmConfig::kBarrierBytes -
                                    sizeof(GemmArgs::few_copies));
}

// By the thread that copies. It reads its jobs again and again, and arguments are slow to read so.
HP_DEVICE void bring_few_jobs(const GemmArgs& args, char* base) {
  if (args.copies != nullptr) return;
  for (int job = 0; job < args.copy_count; ++job) few_jobs_at(base)[job] = args.few_copies[job];
}

HP_DEVICE const CopyJob* jobs_of(const GemmArgs& args, char* base) {
  return args.copies == nullptr ? few_jobs_at(base) : args.copies;
}

// One thread of a copying block: the shared memory of stages and boxes is the ring of granules.
template <GemmConfig kConfig>
HP_DEVICE void copy_granules(const GemmArgs& args, const GemmShared<kConfig>& shared) {
  static_assert(kCopySlots * kCopyGranule + GemmConfig::kBarrierBytes <= kConfig.shared_bytes());
  static_assert(sizeof(typename GemmShared<kConfig>::Control) + sizeof(GemmArgs::few_copies) <=
                GemmConfig::kBarrierBytes);
  Barrier* const filled = shared.control().copied;
  for (int slot = 0; slot < kCopySlots; ++slot) init_barrier(&filled[slot], 1);
  fence_barrier_init();
  bring_few_jobs(args, shared.base);
  Waiter waiter(args.wait);
  CopyRun(jobs_of(args, shared.base), args.copy_count, static_cast<int>(blockIdx.x),
          args.copy_blocks, shared.a(0), filled)
      .finish(waiter);
}

// By a whole warp whose threads store or copy, before they do. Where the kernel bounds the
// execution, waits until the rank may store; false: that wait failed.
HP_DEVICE bool begin_stores(const GemmArgs& args, bool raises) {
  if (args.bounds.ended == nullptr) return true;
  let_next_kernel_begin();
  return begin_bounds(args.wait, args.bounds, raises);
}

// By a thread after its stores or copies are complete, not only read.
HP_DEVICE void end_stores(const GemmArgs& args) {
  if (args.bounds.ended == nullptr) return;
  fence_proxy_async();
  end_bounds(args.wait, args.bounds);
}

// By all threads of a block that copies.
template <GemmConfig kConfig>
HP_DEVICE void copy_first(const GemmArgs& args, const GemmShared<kConfig>& shared, int warp) {
  await_kernel_before();
  if (warp == 0) {
    begin_stores(args, true);
    if (elected()) {
      note_begin(args.wait, true);
      copy_granules<kConfig>(args, shared);
      end_stores(args);
      note_end(args.wait);
    }
    __syncwarp();
  }
  __syncthreads();
}

// By all threads of a block that has copied and now computes: waits for the other block of its
// cluster, since loads of either fill the stages of both, and granules lie there.
template <GemmConfig kConfig>
HP_DEVICE void join_cluster(int warp) {
  if constexpr (kConfig.cluster > 1) {
    if (warp > 0) await_cluster();  // of `begin`, where warp 0 has waited
    release_to_cluster();
    if (warp == 0) await_cluster();
  }
}

// By all warps behind `begin`: waits for the barriers that other warps have initialised.
template <GemmConfig kConfig>
HP_DEVICE void meet() {
  constexpr int kBegun = 5;  // named barrier; consumers use 1 to 4
  if constexpr (kConfig.cluster > 1) {
    await_cluster();
  } else {
    sync_threads(kBegun, kConfig.threads());
  }
}

// By all warps, before all else: initialises barriers and issues the first loads, those of a
// cluster once its other block has barriers too. Returns how many stages this thread fills. Nothing
// hides the code in front of the loads, so it is short.
template <GemmConfig kConfig>
HP_DEVICE int begin(const GemmArgs& args, const GemmShared<kConfig>& shared, int warp) {
  if (warp == 0) {
    const GemmFirst first = first_of(args);
    if (elected()) init_filled<kConfig>(shared);
    __syncwarp();
    if constexpr (kConfig.cluster > 1) {
      announce_barriers();
      meet<kConfig>();
    }
    const int filled = elected() ? load_first<kConfig>(args, shared, first) : 0;
    __syncwarp();
    return filled;
  }
  if (warp == 1) {
    if (elected()) init_emptied<kConfig>(shared);
  } else if (warp == 2) {
    if (elected()) {
      prefetch_map(&args.b);
      prefetch_map(&k_chunk_of(args, 0).map);
      if (in_bulk(kConfig.store)) prefetch_map(&panel_of(args, 0).c);
    }
  } else if (warp == 3) {
    init_boxes<kConfig>(shared);
  }
  __syncwarp();
  if constexpr (kConfig.cluster > 1) announce_barriers();
  return 0;
}

// Warp 0.
template <GemmConfig kConfig>
HP_DEVICE void bring_operands(const GemmArgs& args, const GemmShared<kConfig>& shared, int filled) {
  if constexpr (kConfig.cluster == 1) meet<kConfig>();
  if (!elected()) return;
  GemmWalk<kConfig> walk(args, shared.rows());
  const bool is_unit = walk.locate();
  if constexpr (kConfig.groups) {
    let_next_kernel_begin();
    load_group_stages<kConfig>(args, shared, walk, is_unit);
  } else {
    load_stages<kConfig>(args, shared, walk, is_unit, filled);
  }
}

// By warp 1: lets the consumers store by threads once they know where and the rank may store.
template <GemmConfig kConfig>
HP_DEVICE void let_store(const GemmArgs& args, const GemmShared<kConfig>& shared) {
  note_panels<kConfig>(args, shared);
  if (!begin_stores(args, true)) mark_poisoned(shared.control().poisoned);
  __syncwarp();
  if (elected()) arrive(&shared.control().may_store);
}

// Warps 1 and 2, one for each consumer. Where consumers store by threads, warp 1 lets them begin,
// since they multiply before that.
template <GemmConfig kConfig>
HP_DEVICE void store_results(const GemmArgs& args, const GemmShared<kConfig>& shared,
                             bool has_copied, int warp) {
  constexpr bool kStores = !kConfig.stores_by_consumers();
  meet<kConfig>();
  wait_barrier(&shared.control().begun, 0);
  await_kernel_before();
  if (warp == 2 && elected() && !has_copied) note_begin(args.wait, false);
  if constexpr (kStores) {
    begin_stores(args, warp == 1 && !has_copied);
    if (elected()) {
      store_boxes<kConfig>(args, shared, warp - 1);
      end_stores(args);
      if (!has_copied) note_end(args.wait);
    }
    __syncwarp();
  } else if constexpr (kConfig.by_threads) {
    if (warp == 1) let_store<kConfig>(args, shared);
  }
}

// Warp 3.
template <GemmConfig kConfig>
HP_DEVICE void await_operands(const GemmArgs& args, const GemmShared<kConfig>& shared) {
  meet<kConfig>();
  await_kernel_before();
  if (args.waits > 0 && elected()) watch_arrivals<kConfig>(args, shared);
  __syncwarp();
}

// A consumer warpgroup.
template <GemmConfig kConfig>
HP_DEVICE void consume(const GemmArgs& args, const GemmShared<kConfig>& shared, bool has_copied,
                       int consumer) {
  constexpr bool kStores = kConfig.stores_by_consumers();
  meet<kConfig>();
  wait_barrier(&shared.control().begun, 0);
  grow_registers<kConfig.consumer_registers()>();
  await_kernel_before();
  if (kStores && !kConfig.by_threads) {
    begin_stores(args, consumer == 0 && threadIdx.x % 128 < 32 && !has_copied);
  }
  if constexpr (kConfig.by_threads) {
    SumStore<kConfig> store(args, shared, consumer);
    multiply_tiles<kConfig>(args, shared, consumer,
                            [&](const GemmWalk<kConfig>& walk, int, const GemmSums<kConfig>& sums) {
                              store.store(walk, sums);
                            });
    add_up_tiles<kConfig>(args, shared, consumer);
  } else {
    Ring<kConfig.boxes> boxes;
    multiply_tiles<kConfig>(args, shared, consumer,
                            [&](const GemmWalk<kConfig>& walk, int stage, GemmSums<kConfig>& sums) {
                              hand_on<kConfig>(args, shared, walk, consumer, stage, sums, boxes);
                            });
  }
  if (kStores && args.bounds.ended != nullptr) sync_threads(1 + consumer, 128);
  if (kStores && threadIdx.x % 128 == 0) {
    end_stores(args);
    if (!has_copied) note_end(args.wait);
  }
}

// The whole kernel. The first args.copy_blocks thread blocks copy, the others compute tiles; from
// args.joined on, all do. Notes of a block that has copied are those of its copies.
// `memory` is the dynamic shared memory: GemmConfig::shared_bytes bytes, aligned to 1,024.
template <GemmConfig kConfig>
HP_DEVICE void gemm(const GemmArgs& args, char* memory) {
  static_assert(legal(kConfig));
  const GemmShared<kConfig> shared{memory};
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  const int filled = begin<kConfig>(args, shared, warp);
  const bool has_copied = kConfig.copies && static_cast<int>(blockIdx.x) < args.copy_blocks;
  if constexpr (kConfig.copies) {
    if (has_copied) {
      copy_first<kConfig>(args, shared, warp);
      if (args.joined == GemmArgs::kNeverJoined) return;
      join_cluster<kConfig>(warp);
    }
  }
  if constexpr (kConfig.groups) {
    await_kernel_before();
    count_rows<kConfig>(args, shared);
  }
  if (warp < 4) {
    shrink_registers<kConfig.mover_registers()>();
    if (warp == 0) {
      bring_operands<kConfig>(args, shared, filled);
    } else if (warp < 3) {
      store_results<kConfig>(args, shared, has_copied, warp);
    } else {
      await_operands<kConfig>(args, shared);
    }
  } else {
    consume<kConfig>(args, shared, has_copied, warp / 4 - 1);
  }
}

}  // namespace harpe::device
