#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/device/parts.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/gemm/device/few_rows_order.h"
#include "exec/cuda/kernels/gemm/device/gemm_store.cuh"

// How sums of few rows that were cut along K are joined, as the threads that multiplied hold them.
// Blocks that share a stream write their sums into each other's shared memory, and each adds up
// some rows of all of them. A stream that has a part of a tile leaves it in memory for the tile's
// owner, and no flag beside it: each value is its own. Memory for parts holds kAbsent wherever
// nothing is, which no sum is; the owner waits until all values are others, and puts kAbsent back
// for the next launch. Who adds begins with what it has itself, and takes the others' in the order
// of K. Values are exchanged at the scope of the GPU, each for itself, and nothing else hangs on
// their order. The owner alone turns sums into rows of C.
namespace harpe::device {

// What is needed of panels to store them, in shared memory from the start: arguments that are read
// for the first time behind a long stream come from memory.
struct alignas(16) RowsPanel {
  void* c;
  std::int64_t c_stride;
  std::int32_t first_addend;
  std::int16_t begin;  // row of the tile
  std::int16_t rows;
  std::int16_t addends;
  std::int8_t rows_of;  // as GemmPanel's
  std::int8_t is_in_data;
};

// Shared memory of a block: barriers, stages of A and B, each aligned to 1,024 bytes, then what
// other blocks of the stream send a consumer, in whose place it stages C afterwards.
template <GemmConfig kConfig>
struct FewRowsShared {
  struct Control {
    Barrier filled[kConfig.slots()];   // by who loads B and by warps that load A
    Barrier emptied[kConfig.slots()];  // by all warps that multiply
    // Of each consumer: by itself and what others send it, and by its warps in all blocks of the
    // stream once they need nothing any more of what was sent to them.
    Barrier sent[kConfig.consumers()];
    Barrier taken[kConfig.consumers()];
    Barrier begun;  // by the warp that says whether and where to store
    std::uint32_t poisoned;
    std::uint32_t awaited;  // panels that somebody waits for, a bit each
    std::uint32_t counted;  // those of them that do not say by themselves that they are there
    std::int32_t rows_end;  // of all panels
    RowsPanel panels[kMostRowPanels];
    std::uint8_t panel_of[kConfig.tile_m / GemmConfig::kRowAlign];  // of rows of the tile
  };
  static_assert(sizeof(Control) <= GemmConfig::kBarrierBytes);

  char* base;

  [[nodiscard]] HP_DEVICE Control& control() const { return *reinterpret_cast<Control*>(base); }
  [[nodiscard]] HP_DEVICE bool poisoned() const {
    return *static_cast<volatile std::uint32_t*>(&control().poisoned) != 0;
  }
  [[nodiscard]] HP_DEVICE const RowsPanel& panel(int index) const {
    return control().panels[index];
  }
  [[nodiscard]] HP_DEVICE char* a(int slot) const {
    return base + GemmConfig::kBarrierBytes + slot * kConfig.slot_stages() * kConfig.stage_bytes();
  }
  [[nodiscard]] HP_DEVICE char* b(int slot) const { return a(slot) + kConfig.a_bytes(); }
  [[nodiscard]] HP_DEVICE char* staged(int consumer) const {
    return a(kConfig.slots()) + consumer * kConfig.staged_bytes();
  }
};

// Rows of the tile that a panel takes.
HP_DEVICE int rows_in_tile(const GemmPanel& panel) { return box_rows(panel.rows); }

// Which block of its pair this is, 0 of those that are none.
template <GemmConfig kConfig>
HP_DEVICE int block_of_pair() {
  if constexpr (kConfig.cluster == 1) return 0;
  return static_cast<int>(block_in_cluster()) % kConfig.cluster;
}

// The cluster's block that is the first of the pair.
template <GemmConfig kConfig>
HP_DEVICE std::uint32_t first_of_pair() {
  return block_in_cluster() / kConfig.cluster * kConfig.cluster;
}

// Rows of the tile that the block has: a pair's blocks have them between them.
struct OwnRows {
  int begin;
  int end;
};

template <GemmConfig kConfig>
HP_DEVICE OwnRows own_rows(const GemmArgs& args) {
  if constexpr (kConfig.cluster == 1) return {.begin = 0, .end = kConfig.tile_m};
  const int begin = block_of_pair<kConfig>() * args.rows_each;
  return {.begin = begin, .end = begin + args.rows_each};
}

// A box of B, to both blocks of a pair.
template <GemmConfig kConfig>
HP_DEVICE void load_for_pair(void* to, const TensorMap* map, Barrier* filled, int x, int y) {
  if constexpr (kConfig.cluster == 1) {
    load_tile_once(to, map, filled, x, y);
  } else {
    constexpr std::uint32_t kAll = (1U << kConfig.cluster) - 1;
    load_tile_once_multicast(to, map, filled, x, y,
                             static_cast<std::uint16_t>(kAll << first_of_pair<kConfig>()));
  }
}

// The cluster's block that joins with this one as the stream's block `share`.
template <GemmConfig kConfig>
HP_DEVICE std::uint32_t block_that_joins(int share) {
  return static_cast<std::uint32_t>(share * kConfig.cluster + block_of_pair<kConfig>());
}

// A consumer's exchange with the same consumer of the stream's other blocks, of pairs those that
// have the same rows. Its barriers guard shared memory of the cluster alone: arrivals and waits
// have the default scope, as all that stages of a cluster do (mbarrier.cuh).
template <GemmConfig kConfig>
class Exchange {
 public:
  HP_DEVICE Exchange(const FewRowsShared<kConfig>& shared, int consumer, int shares)
      : sent_(&shared.control().sent[consumer]),
        taken_(&shared.control().taken[consumer]),
        inbox_(shared.staged(consumer)),
        threads_(1 + consumer),
        shares_(shares) {}

  [[nodiscard]] HP_DEVICE int shares() const { return shares_; }
  [[nodiscard]] HP_DEVICE char* inbox() const { return inbox_; }

  // What was sent before is taken, by all blocks.
  HP_DEVICE void await_taken() {
    if (shares_ > 1) wait_barrier(taken_, phase_ ^ 1);
  }
  // So many bytes will be sent here.
  HP_DEVICE void expect(int bytes) {
    if (threadIdx.x % 128 == 0) arrive_expecting(sent_, static_cast<std::uint32_t>(bytes));
  }
  // Where another block's inbox and its barrier lie.
  [[nodiscard]] HP_DEVICE std::uint32_t inbox_of(int block) const {
    return shared_address_in(inbox_, in_cluster(block));
  }
  [[nodiscard]] HP_DEVICE std::uint32_t sent_of(int block) const {
    return shared_address_in(sent_, in_cluster(block));
  }
  HP_DEVICE void await_sent() { wait_barrier(sent_, phase_); }
  // Behind all use of the inbox.
  HP_DEVICE void take() {
    if (shares_ == 1) return;
    __syncwarp();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < shares_) arrive_at(taken_, in_cluster(lane));
    phase_ ^= 1;
  }
  // The consumer's threads of this block.
  HP_DEVICE void sync() { sync_threads(threads_, 128); }

 private:
  HP_DEVICE static std::uint32_t in_cluster(int block) { return block_that_joins<kConfig>(block); }

  Barrier* sent_;
  Barrier* taken_;
  char* inbox_;
  int threads_;
  int shares_;
  std::uint32_t phase_ = 0;
};

// Which *strips* of a tile a block joins. A strip is eight rows, of which each thread that
// multiplies holds a quad: columns t / 4 and t / 4 + 8 of its warp's sixteen of rows 2 (t % 4) and
// the next, a column after the other. Blocks of a stream join equally many, the last ones fewer.
template <GemmConfig kConfig>
struct Strips {
  static constexpr int kAll = kConfig.tile_m / GemmConfig::kRowAlign;
  static constexpr int kStaged = kConfig.staged_rows() / GemmConfig::kRowAlign;

  HP_DEVICE Strips(const FewRowsShared<kConfig>& shared, const Divisor& shares, int share)
      : all(shared.control().rows_end / GemmConfig::kRowAlign),
        each((all + shares.number - 1) / shares),
        begin(share * each),
        end(begin + each < all ? begin + each : all) {}
  [[nodiscard]] HP_DEVICE bool has(int strip) const { return begin <= strip && strip < end; }
  [[nodiscard]] HP_DEVICE int count() const { return begin < end ? end - begin : 0; }
  // Whether any of those that are staged together from `first` on are the block's.
  [[nodiscard]] HP_DEVICE bool has_staged(int first) const {
    return begin < end && begin < first + kStaged && end > first;
  }

  int all;
  int each;
  int begin;
  int end;
};

template <GemmConfig kConfig>
using Accumulators = float[kConfig.tile_m / 2];

HP_DEVICE float4 quad_of(const float* sums, int strip) {
  return make_float4(sums[strip * 4], sums[strip * 4 + 1], sums[strip * 4 + 2],
                     sums[strip * 4 + 3]);
}

HP_DEVICE void add_quad(float* sums, int strip, const float4& quad) {
  sums[strip * 4] += quad.x;
  sums[strip * 4 + 1] += quad.y;
  sums[strip * 4 + 2] += quad.z;
  sums[strip * 4 + 3] += quad.w;
}

// Sends all blocks of the stream what they join. An inbox has a place for each other block, in
// their order, with a quad of every strip.
template <GemmConfig kConfig>
HP_DEVICE void send_strips(const Strips<kConfig>& strips, int share,
                           const Accumulators<kConfig>& sums, Exchange<kConfig>& exchange) {
  constexpr int kBytes = GemmConfig::kStripBytes;
  exchange.await_taken();
  exchange.expect((exchange.shares() - 1) * strips.count() * kBytes);
  int block = -1;
  int next = 0;  // the next block's first strip
  std::uint32_t to = 0;
  std::uint32_t sent = 0;
#pragma unroll
  for (int i = 0; i < strips.kAll; ++i) {
    if (i >= strips.all) break;
    if (i == next) {
      ++block;
      const int from = share < block ? share : share - 1;
      to = exchange.inbox_of(block) + threadIdx.x % 128 * 16 +
           static_cast<std::uint32_t>((from * strips.each - next) * kBytes);
      sent = exchange.sent_of(block);
      next += strips.each;
    }
    if (block != share) store_in_cluster(to + i * kBytes, quad_of(sums, i), sent);
  }
}

// Adds what the stream's other blocks have of the block's strips.
template <GemmConfig kConfig>
HP_DEVICE void add_shares(const Strips<kConfig>& strips, Accumulators<kConfig>& sums,
                          Exchange<kConfig>& exchange) {
  constexpr int kBytes = GemmConfig::kStripBytes;
  const char* from = exchange.inbox() + threadIdx.x % 128 * 16 - strips.begin * kBytes;
  exchange.await_sent();
#pragma unroll 1
  for (int other = 1; other < exchange.shares(); ++other, from += strips.each * kBytes) {
#pragma unroll
    for (int i = 0; i < strips.kAll; ++i) {
      if (strips.has(i)) add_quad(sums, i, *reinterpret_cast<const float4*>(from + i * kBytes));
    }
  }
}

// Quads of sums from one stream's part to the next one's.
template <GemmConfig kConfig>
HP_DEVICE constexpr int part_quads() {
  return kConfig.cluster * kConfig.consumers() * kConfig.tile_m * 16;
}

// Where a thread's quads of a consumer's part lie, strip by strip.
template <GemmConfig kConfig>
HP_DEVICE uint4* part_of(const GemmArgs& args, int stream, int consumer) {
  const int of_block = block_of_pair<kConfig>() * kConfig.consumers() + consumer;
  return reinterpret_cast<uint4*>(args.partials) + stream * part_quads<kConfig>() +
         of_block * kConfig.tile_m * 16 + threadIdx.x % 128;
}

template <GemmConfig kConfig>
HP_DEVICE void leave_part(const Strips<kConfig>& strips, uint4* to,
                          const Accumulators<kConfig>& sums) {
#pragma unroll
  for (int i = 0; i < strips.kAll; ++i) {
    if (!strips.has(i)) continue;
    store_part(to + i * 128, present(sums[i * 4]), present(sums[i * 4 + 1]),
               present(sums[i * 4 + 2]), present(sums[i * 4 + 3]));
  }
}

// kParts consecutive parts, once all are there, added in the order of the parts.
template <GemmConfig kConfig, int kParts>
HP_DEVICE void take_parts(const Strips<kConfig>& strips, uint4* first,
                          Accumulators<kConfig>& sums) {
  constexpr int kAll = Strips<kConfig>::kAll;
  const auto place = [&](int at) {
    return first + at / kAll * part_quads<kConfig>() + at % kAll * 128;
  };
  uint4 quads[kParts * kAll];
  bool here = false;
  while (!here) {
    here = true;
#pragma unroll
    for (int at = 0; at < kParts * kAll; ++at) {
      if (strips.has(at % kAll)) quads[at] = load_part(place(at));
    }
#pragma unroll
    for (int at = 0; at < kParts * kAll; ++at) {
      if (strips.has(at % kAll)) here = here && !is_absent(quads[at]);
    }
  }
#pragma unroll
  for (int at = 0; at < kParts * kAll; ++at) {
    if (!strips.has(at % kAll)) continue;
    store_part(place(at), kAbsent, kAbsent, kAbsent, kAbsent);
    add_quad(sums, at % kAll,
             make_float4(__uint_as_float(quads[at].x), __uint_as_float(quads[at].y),
                         __uint_as_float(quads[at].z), __uint_as_float(quads[at].w)));
  }
}

// The same of all parts from `part` to the one before `end`, kParts at a look while there are so
// many, then half of it.
template <GemmConfig kConfig, int kParts>
HP_DEVICE void take_all(const Strips<kConfig>& strips, uint4* part, const uint4* end,
                        Accumulators<kConfig>& sums) {
  constexpr int kStep = kParts * part_quads<kConfig>();
#pragma unroll 1
  for (; part + kStep <= end; part += kStep) take_parts<kConfig, kParts>(strips, part, sums);
  if constexpr (kParts > 1) take_all<kConfig, kParts / 2>(strips, part, end, sums);
}

// The parts of lower streams. They end by themselves: blocks are dispatched in the order of their
// index, which CUB's scans rely on too, so that lower ones run; these wait for lower ones alone,
// and leave something even where a wait expired.
template <GemmConfig kConfig>
HP_DEVICE void add_parts(const GemmArgs& args, const Strips<kConfig>& strips,
                         const StreamWalk& walk, int consumer, Accumulators<kConfig>& sums) {
  if (walk.first() == 0) return;
  take_all<kConfig, parts_at_once(kConfig.tile_m)>(
      strips, part_of<kConfig>(args, walk.first_stream(), consumer),
      part_of<kConfig>(args, walk.stream(), consumer), sums);
}

// The block's strips from kFirst on into shared memory, a row of C after the other.
template <GemmConfig kConfig, int kFirst>
HP_DEVICE void stage_rows(const Strips<kConfig>& strips, char* staged,
                          const Accumulators<kConfig>& sums) {
  constexpr int kStride = GemmConfig::kStagedRowBytes / 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4;
  float* const of_thread = reinterpret_cast<float*>(staged) + lane % 4 * 2 * kStride + column;
#pragma unroll
  for (int i = 0; i < strips.kStaged; ++i) {
    if (!strips.has(kFirst + i)) continue;
    float* const to = of_thread + i * GemmConfig::kRowAlign * kStride;
    const float4 quad = quad_of(sums, kFirst + i);
    to[0] = quad.x;
    to[kStride] = quad.y;
    to[8] = quad.z;
    to[kStride + 8] = quad.w;
  }
}

// What a thread of a warp stores of a strip at a time: eight columns of one of four rows, or of two
// rows that are four apart.
template <GemmConfig kConfig>
struct Eights {
  static constexpr int kCount = kConfig.tile_m < 32 ? 1 : 2;
  static constexpr int kTimes = 2 / kCount;  // of a strip

  int time;
  // Of the strip.
  [[nodiscard]] HP_DEVICE int row(int index) const {
    return static_cast<int>(threadIdx.x) % 32 / 8 + (time + index) * 4;
  }
  [[nodiscard]] HP_DEVICE static int column() { return static_cast<int>(threadIdx.x) % 8 * 8; }
};

// Calls visit(strip, eights) for what the warp stores of the block's strips from `first` on, staged
// together.
template <GemmConfig kConfig, class Visit>
HP_DEVICE void for_each_strip(const Strips<kConfig>& strips, int first, Visit visit) {
  constexpr int kWarps = 4;
  constexpr int kTimes = Eights<kConfig>::kTimes;
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) % 128 / 32, 0);
#pragma unroll 1
  for (int at = warp; at < strips.kStaged * kTimes; at += kWarps) {
    const int strip = first + at / kTimes;
    if (strips.has(strip)) visit(strip, Eights<kConfig>{at % kTimes});
  }
}

}  // namespace harpe::device
