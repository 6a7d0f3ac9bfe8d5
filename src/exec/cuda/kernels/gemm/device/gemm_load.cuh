#pragma once

#include "exec/cuda/device/tma.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/kernels/gemm/device/gemm_walk.cuh"

// The producer's loads of A and B (gemm.cuh), by warp 0, and the flags that warp 3 acquires for it.
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
  constexpr int kColumns = kConfig.box_columns();
  constexpr int kBoxes = kRows ? 1 : kShare / kColumns;
  Barrier* filled = &shared.control().filled[stage];
  const int in_cluster = kConfig.cluster == 1 ? 0 : static_cast<int>(block_in_cluster());
  const int first = kSharesRows ? 0 : in_cluster * kShare;
  const int first_k = kSharesRows ? in_cluster * kLoaded.b_box_rows() : 0;
#pragma unroll
  for (int box = 0; box < kBoxes; ++box) {
    const int column = first + box * kColumns;
    char* to = shared.b(stage) + column * (GemmConfig::kTileK * 2) + first_k * (kColumns * 2);
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
HP_DEVICE void watch_arrivals(const GemmArgs& args, const GemmShared<kConfig>& shared) {
  auto& control = shared.control();
  Waiter waiter(args.wait);
  std::uint32_t arrived = 0;
  for (GemmWalk<kConfig> walk(args, shared.rows()); walk.locate(); walk.next()) {
    for_each_k_chunk(args, walk, [&](const GemmKChunk& from, int k_chunk, int, int) {
      if (from.ready.flag == nullptr) return;
      waiter.watch(from.ready, k_chunk);
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

// A K chunk or addend as the loading thread uses it. It is read once: every load that follows is
// volatile, so the compiler would read the fields again.
template <GemmConfig kConfig>
struct LoadedKChunk {
  HP_DEVICE LoadedKChunk(const GemmArgs& args, const GemmWalk<kConfig>& walk, int k_chunk) {
    struct Fields {
      bool is_addend;
      bool is_awaited;
      bool has_b;
      int k_begin;
      int a_bytes;
      int rest_bytes;
    };
    const Fields fields = read_k_chunk(args, k_chunk, [](const GemmKChunk& one) {
      return Fields{one.is_addend != 0, one.ready.flag != nullptr,
                    one.has_b != 0,     one.k_begin,
                    one.a_bytes,        one.rest_bytes};
    });
    const GemmKChunk& from = k_chunk_of(args, k_chunk);
    is_addend = fields.is_addend;
    is_awaited = fields.is_awaited;
    k_begin = fields.k_begin;
    b = fields.has_b ? &from.b : &args.b;
    // The panel's last tile may have fewer rows than a tile. In a cluster it may have none: loads
    // that lie wholly beyond the map are slow.
    const int rows = walk.panel_rows() - walk.row();
    const bool has_rest = !is_addend && rows < kConfig.tile_m;
    has_rows = is_addend || rows > 0;
    a = has_rest ? &from.rest : &from.map;
    const int of_a = has_rest ? fields.rest_bytes : fields.a_bytes;
    bytes = static_cast<std::uint32_t>(kConfig.b_bytes() + (has_rows ? of_a : 0));
  }

  bool is_addend;
  bool is_awaited;
  bool has_rows;  // of A
  int k_begin;
  const TensorMap* a;
  const TensorMap* b;
  std::uint32_t bytes;  // that TMA brings into a stage
};

// The loading thread has issued its first load, or is about to wait for another rank. Until then
// the consumers and the store warps stay where they are: what they execute delays the load.
class FirstLoad {
 public:
  HP_DEVICE explicit FirstLoad(Barrier* begun) : begun_(begun) {}
  HP_DEVICE void note() {
    if (is_noted_) return;
    arrive(begun_);
    is_noted_ = true;
  }

 private:
  Barrier* begun_;
  bool is_noted_ = false;
};

// What this block loads first.
HP_DEVICE GemmFirst first_of(const GemmArgs& args) {
  return blockIdx.x < GemmArgs::kMostFirst ? args.first[blockIdx.x] : GemmFirst{};
}

// Warp 0, one thread: fills the first stages; returns how many. B that no kernel writes is loaded
// before the preceding kernel of the stream has ended (PDL), but only of one stage: with more, the
// first stage would be filled later.
template <GemmConfig kConfig>
HP_DEVICE int load_first(const GemmArgs& args, const GemmShared<kConfig>& shared,
                         const GemmFirst& first) {
  if (kConfig.groups || first.blocks == 0) return 0;
  const GemmKChunk& k_chunk = args.few_k_chunks[first.k_chunk];
  const TensorMap* const a = first.box == GemmFirst::Rest ? &k_chunk.rest : &k_chunk.map;
  const TensorMap* const b = first.has_b != 0 ? &k_chunk.b : &args.b;
  const int row = first.row * kConfig.tile_m;
  const int column = first.column * kConfig.tile_n;
  const auto load_b_of = [&](int stage) {
    arrive_expecting(&shared.control().filled[stage], first.bytes);
    load_b<kConfig>(b, shared, stage, column, (first.b_block + stage) * GemmConfig::kTileK);
  };
  if (first.b_is_ahead != 0) load_b_of(0);
  await_kernel_before();
#pragma unroll 1
  for (int stage = 0; stage < first.blocks; ++stage) {
    if (stage > 0 || first.b_is_ahead == 0) load_b_of(stage);
    if (first.box == GemmFirst::None) continue;
    load_a<kConfig>(a, shared, stage, (first.a_block + stage) * GemmConfig::kTileK, row);
  }
  return first.blocks;
}

// Warp 0, one thread: fills stage after stage, from the walk's unit on if there is one; the first
// `filled` are. Rows of A beyond the end of a panel keep old data of the stage; their results are
// not stored. B that no kernel writes is loaded before A's flag is acquired; other B is loaded
// after it.
template <GemmConfig kConfig>
HP_DEVICE void load_stages(const GemmArgs& args, const GemmShared<kConfig>& shared,
                           GemmWalk<kConfig>& walk, bool is_unit, int filled) {
  auto& control = shared.control();
  FirstLoad first_load(&control.begun);
  if (filled > 0) first_load.note();
  await_kernel_before();
  if (args.waits == 0) let_next_kernel_begin();
  Ring<kConfig.stages> ring;
  std::uint32_t arrived = 0;
  std::uint32_t needed = 0;
  for (; is_unit; walk.next(), is_unit = walk.locate()) {
    for_each_k_chunk(args, walk, [&](const GemmKChunk& from, int index, int first, int last) {
      const LoadedKChunk<kConfig> k_chunk(args, walk, index);
      const auto load_b_at = [&](int k) {
        load_b<kConfig>(k_chunk.b, shared, ring.slot, walk.column(), k_chunk.k_begin + k);
      };
      const bool comes_late = k_chunk.is_awaited && args.b_is_fixed == 0;
      if (k_chunk.is_awaited) ++needed;
      for (int block = first; block < last; ++block, ring.advance()) {
        if (filled > 0) {
          --filled;
          continue;
        }
        const int k = block * GemmConfig::kTileK;
        const bool is_addend = kConfig.takes_addends() && !kConfig.by_threads && k_chunk.is_addend;
        wait_barrier(&control.emptied[ring.slot], ring.parity ^ 1);
        arrive_expecting(&control.filled[ring.slot], k_chunk.bytes);
        if (!is_addend && !comes_late) load_b_at(k);
        first_load.note();
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
          load_addend<kConfig>(args, shared, walk, k_chunk.a, ring.slot, k);
        } else {
          if (comes_late) load_b_at(k);
          if (k_chunk.has_rows) load_a<kConfig>(k_chunk.a, shared, ring.slot, k, walk.row());
        }
      }
    });
  }
  first_load.note();
  if (args.waits > 0) let_next_kernel_begin();  // this block awaits no more signals
  if constexpr (kConfig.cluster > 1) await_released(control.emptied, ring);
}

// The same for groups, which wait for no flag. Where a group's last tile has fewer chunks, its
// first chunk is loaded in their place; their results are not stored.
template <GemmConfig kConfig>
HP_DEVICE void load_group_stages(const GemmArgs& args, const GemmShared<kConfig>& shared,
                                 GemmWalk<kConfig>& walk, bool is_unit) {
  constexpr int kChunkBytes = kConfig.chunk_rows() * GemmConfig::kTileK * 2;
  auto& control = shared.control();
  const GemmKChunk* const k_chunks = args.k_chunks == nullptr ? args.few_k_chunks : args.k_chunks;
  FirstLoad first_load(&control.begun);
  Ring<kConfig.stages> ring;
  for (; is_unit; walk.next(), is_unit = walk.locate()) {
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
        load_tile(shared.a(ring.slot) + i * kChunkBytes, &k_chunks[chunks[i].panel].map, filled, k,
                  chunks[i].row);
      }
      first_load.note();
    }
  }
  first_load.note();
  if constexpr (kConfig.cluster > 1) await_released(control.emptied, ring);
}

}  // namespace harpe::device
