#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/device/parts.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/gemm/device/addends.cuh"
#include "exec/cuda/kernels/gemm/device/few_rows_order.h"
#include "exec/cuda/kernels/gemm/device/gemm_store.cuh"

// How few-row sums that were cut along K are added up, in the accumulator layout.
// Within a stream, thread blocks write their sums into each other's shared memory; each block adds
// up some strips of rows. Between streams, a stream leaves its part of a tile in global memory for
// the tile's owner, without a flag: memory for parts holds kAbsent wherever no value is, and no sum
// has that value. The owner polls until every value has arrived, and stores kAbsent back for the
// next launch. Parts are stored and loaded relaxed at GPU scope; each value stands for itself, so
// no other data depends on their order. Sums start with the adding block's own, then add the others
// in the order of K. Only the owner converts sums into rows of C.
namespace harpe::device {

// What the epilogue needs of a panel, in shared memory. The first read of a kernel argument after a
// long stream would miss the cache.
struct alignas(16) RowsPanel {
  void* c;
  std::int64_t c_stride;
  std::int32_t first_addend;
  std::int16_t begin;  // first row in this block's part of the tile; may be negative with pairs
  std::int16_t rows;
  std::int16_t addends;
  std::int8_t rows_of;  // as GemmPanel's
  std::int8_t is_in_data;
  std::int16_t first_noted;  // index of its first addend among the noted ones of all panels
};

// Shared memory of a thread block: barriers, stages of A and B, each aligned to 1,024 bytes, then
// for each consumer the inbox for the stream's other blocks, in which it also stages C later.
template <GemmConfig kConfig>
struct FewRowsShared {
  struct Control {
    Barrier filled[kConfig.slots()];   // arrivals: the warp that loads B and those that load A
    Barrier emptied[kConfig.slots()];  // arrivals: all consumer warps, of both blocks of a pair
    // For each consumer. sent: all bytes for its inbox have arrived. taken: the same consumer in
    // each block of the stream has finished with its inbox.
    Barrier sent[kConfig.consumers()];
    Barrier taken[kConfig.consumers()];
    Barrier begun;  // warp 3: `panels` is written, and the consumers may store
    std::uint32_t poisoned;
    std::uint32_t awaited;  // panels with a counter or a signal, one bit each
    std::uint32_t counted;  // those of them that are not in data
    std::int32_t rows_end;  // end of the rows of all panels in this block's part of the tile
    RowsPanel panels[kMostRowPanels];
    RowsAddend addends[kMostNotedAddends];  // the first of all panels together
    std::uint8_t panel_of[kConfig.tile_m / GemmConfig::kRowAlign];  // the panel of each strip
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
  [[nodiscard]] HP_DEVICE RowsAddend addend(const GemmArgs& args, const RowsPanel& panel,
                                            int index) const {
    const int noted = panel.first_noted + index;
    if (noted < kMostNotedAddends) return control().addends[noted];
    return addend_of(k_chunk_of(args, panel.first_addend + index));
  }
  [[nodiscard]] HP_DEVICE char* a(int slot) const {
    return base + GemmConfig::kBarrierBytes + slot * kConfig.slot_stages() * kConfig.stage_bytes();
  }
  [[nodiscard]] HP_DEVICE char* b(int slot) const { return a(slot) + kConfig.a_bytes(); }
  [[nodiscard]] HP_DEVICE char* staged(int consumer) const {
    return a(kConfig.slots()) + consumer * kConfig.staged_bytes();
  }
};

// Rows of the tile that a panel occupies.
HP_DEVICE int rows_in_tile(const GemmPanel& panel) { return box_rows(panel.rows); }

// The index of this thread block in its pair; 0 without pairs.
template <GemmConfig kConfig>
HP_DEVICE int block_of_pair() {
  if constexpr (kConfig.cluster == 1) return 0;
  return static_cast<int>(block_in_cluster()) % kConfig.cluster;
}

// The rank in the cluster of the pair's first block.
template <GemmConfig kConfig>
HP_DEVICE std::uint32_t first_of_pair() {
  return block_in_cluster() / kConfig.cluster * kConfig.cluster;
}

// The rows of the tile that this thread block has; the blocks of a pair divide them.
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

// Loads a box of B, with pairs into both blocks.
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

// The rank in the cluster of the block that has share `share` of the same rows as this block.
template <GemmConfig kConfig>
HP_DEVICE std::uint32_t block_that_joins(int share) {
  return static_cast<std::uint32_t>(share * kConfig.cluster + block_of_pair<kConfig>());
}

// A consumer's exchange with the same consumer in the stream's other thread blocks; with pairs, in
// those that have the same rows. Its barriers guard only shared memory of the cluster, so arrivals
// and waits use the default scope, as those of a cluster's stages do (mbarrier.cuh).
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

  // Waits until all blocks have read what was sent before.
  HP_DEVICE void await_taken() {
    if (shares_ > 1) wait_barrier(taken_, phase_ ^ 1);
  }
  // Announces `bytes` bytes that the other blocks will send here.
  HP_DEVICE void expect(int bytes) {
    if (threadIdx.x % 128 == 0) arrive_expecting(sent_, static_cast<std::uint32_t>(bytes));
  }
  // Cluster addresses of another block's inbox and of its `sent` barrier.
  [[nodiscard]] HP_DEVICE std::uint32_t inbox_of(int block) const {
    return shared_address_in(inbox_, in_cluster(block));
  }
  [[nodiscard]] HP_DEVICE std::uint32_t sent_of(int block) const {
    return shared_address_in(sent_, in_cluster(block));
  }
  HP_DEVICE void await_sent() { wait_barrier(sent_, phase_); }
  // By all warps of the consumer, after the last use of the inbox: arrives at all blocks' `taken`.
  HP_DEVICE void take() {
    if (shares_ == 1) return;
    __syncwarp();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < shares_) arrive_at(taken_, in_cluster(lane));
    phase_ ^= 1;
  }
  // A barrier of the consumer's threads of this block.
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

// The *strips* of a tile that a thread block adds up. A strip is eight rows. Each consumer thread
// holds a quad of it: of its warp's sixteen columns, t / 4 and t / 4 + 8, each in rows 2 (t % 4)
// and the next. Strips are divided equally over the stream's blocks; the last may have fewer.
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
  // Whether the block has any of the kStaged strips from `first` on.
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

// Sends each block of the stream the sums of its strips. An inbox has a place for each other block,
// in their order, which holds a quad per thread for each strip of the receiver.
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

// Adds the sums that the stream's other blocks have sent for this block's strips.
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

// Distance in quads between the parts of two consecutive streams.
template <GemmConfig kConfig>
HP_DEVICE constexpr int part_quads() {
  return kConfig.cluster * kConfig.consumers() * kConfig.tile_m * 16;
}

// The first of this thread's quads in a consumer's part; those of further strips are 128 apart.
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

// Polls kParts consecutive parts until all values have arrived, then adds them in their order.
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

// The same for all parts in [part, end): kParts per poll while as many remain, then half as many.
template <GemmConfig kConfig, int kParts>
HP_DEVICE void take_all(const Strips<kConfig>& strips, uint4* part, const uint4* end,
                        Accumulators<kConfig>& sums) {
  constexpr int kStep = kParts * part_quads<kConfig>();
#pragma unroll 1
  for (; part + kStep <= end; part += kStep) take_parts<kConfig, kParts>(strips, part, sums);
  if constexpr (kParts > 1) take_all<kConfig, kParts / 2>(strips, part, end, sums);
}

// Adds the parts of lower streams. This poll always ends. Thread blocks are dispatched in the order
// of their index, which CUB's scans rely on too, so all lower streams run or have run; they wait
// only for lower ones in turn, and store their parts even after a wait of theirs expired.
template <GemmConfig kConfig>
HP_DEVICE void add_parts(const GemmArgs& args, const Strips<kConfig>& strips,
                         const StreamWalk& walk, int consumer, Accumulators<kConfig>& sums) {
  if (walk.first() == 0) return;
  take_all<kConfig, parts_at_once(kConfig.tile_m)>(
      strips, part_of<kConfig>(args, walk.first_stream(), consumer),
      part_of<kConfig>(args, walk.stream(), consumer), sums);
}

// Writes the block's strips from kFirst on into shared memory as rows of C.
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

// What one thread stores of a strip at a time: eight columns of one row, or of two rows that are
// four apart. A warp covers four rows, or all eight.
template <GemmConfig kConfig>
struct Eights {
  static constexpr int kCount = kConfig.tile_m < 32 ? 1 : 2;
  static constexpr int kTimes = 2 / kCount;  // stores per strip

  int time;
  // Row of the strip.
  [[nodiscard]] HP_DEVICE int row(int index) const {
    return static_cast<int>(threadIdx.x) % 32 / 8 + (time + index) * 4;
  }
  [[nodiscard]] HP_DEVICE static int column() { return static_cast<int>(threadIdx.x) % 8 * 8; }
};

// Calls visit(strip, eights) for this warp's share of the block's strips that are staged from
// `first` on.
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
