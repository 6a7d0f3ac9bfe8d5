#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/device/parts.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/gemm/device/few_rows_order.h"
#include "exec/cuda/kernels/gemm/device/gemm_store.cuh"

// How sums of few rows that were cut along K are joined. Each block of a stream stages its sums in
// shared memory, and each adds up some rows of all of them, in the order of K. A stream that has a
// part of a tile leaves those in memory for the tile's owner, and no flag beside them: each value
// is its own. Memory for parts holds kAbsent wherever nothing is, which no sum is; the owner waits
// until all values are others, adds them in the order of K, and puts kAbsent back for the next
// launch. Values are exchanged at the scope of the GPU, each for itself, and nothing else hangs on
// their order.
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

// Shared memory of a block: barriers, stages of A and B, each aligned to 1,024 bytes, then what a
// consumer stages of C.
template <GemmConfig kConfig>
struct FewRowsShared {
  struct Control {
    Barrier filled[kConfig.slots()];   // by who loads B and by warps that load A
    Barrier emptied[kConfig.slots()];  // by all warps that multiply
    // Of each consumer, by its warps in all blocks of the stream: sums are staged, and taken again.
    Barrier staged[kConfig.consumers()];
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

// A consumer's barriers with the same consumer of the stream's other blocks. They guard shared
// memory alone, which the blocks of a cluster read where it lies: arrivals and waits have the
// default scope, as all that stages of a cluster do (mbarrier.cuh).
template <GemmConfig kConfig>
class Exchange {
 public:
  HP_DEVICE Exchange(const FewRowsShared<kConfig>& shared, int consumer, int shares)
      : staged_(&shared.control().staged[consumer]),
        taken_(&shared.control().taken[consumer]),
        threads_(1 + consumer),
        shares_(shares) {}

  // What was staged before is taken, by all blocks.
  HP_DEVICE void await_taken() {
    if (shares_ == 1) {
      sync_threads(threads_, 128);
    } else {
      wait_barrier(taken_, phase_ ^ 1);
    }
  }
  // Behind what this thread stages: what all have staged may be read.
  HP_DEVICE void await_staged() {
    if (shares_ == 1) {
      sync_threads(threads_, 128);
    } else {
      arrive_at_all(staged_);
      wait_barrier(staged_, phase_);
    }
  }
  // Behind what this thread reads.
  HP_DEVICE void take() {
    if (shares_ > 1) arrive_at_all(taken_);
    phase_ ^= 1;
  }

 private:
  HP_DEVICE void arrive_at_all(Barrier* barrier) {
    __syncwarp();
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane < static_cast<std::uint32_t>(shares_)) arrive_at(barrier, lane);
  }

  Barrier* staged_;
  Barrier* taken_;
  int threads_;
  int shares_;
  std::uint32_t phase_ = 0;
};

// Rows [kFirst, …) of the accumulators into shared memory, a row of C after the other: thread t
// holds columns t / 4 and t / 4 + 8 of its warp's sixteen, rows 8 j + 2 (t % 4) and the next.
template <GemmConfig kConfig, int kFirst>
HP_DEVICE void stage_rows(char* staged, const float (&sums)[kConfig.tile_m / 2]) {
  constexpr int kStride = GemmConfig::kStagedRowBytes / 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4;
  float* const to = reinterpret_cast<float*>(staged) + lane % 4 * 2 * kStride + column;
#pragma unroll
  for (int j = 0; j < kConfig.staged_rows() / 8; ++j) {
    const float* const from = &sums[(kFirst / 8 + j) * 4];
    to[j * 8 * kStride] = from[0];
    to[(j * 8 + 1) * kStride] = from[1];
    to[j * 8 * kStride + 8] = from[2];
    to[(j * 8 + 1) * kStride + 8] = from[3];
  }
}

// What a thread has in one pass of the rows of the tile from `first` on that are staged together:
// groups of eight columns of a row, counted row by row, spread over the threads of all blocks of
// the stream.
template <GemmConfig kConfig>
struct Eights {
  static constexpr int kCount = eights_at_once(kConfig.tile_m);
  static constexpr int kAll = kConfig.staged_rows() * 8;
  static constexpr int kPasses = join_passes(kConfig.tile_m);

  HP_DEVICE Eights(const FewRowsShared<kConfig>& shared, const StreamWalk& walk, int first,
                   int pass)
      : step(walk.shares() * 128), end((shared.control().rows_end - first) * 8) {
    begin = pass * kCount * step + walk.share() * 128 + static_cast<int>(threadIdx.x) % 128;
    if (end > kAll) end = kAll;
  }
  [[nodiscard]] HP_DEVICE int at(int index) const { return begin + index * step; }
  [[nodiscard]] HP_DEVICE bool has(int index) const { return at(index) < end; }

  int begin;
  int step;
  int end;
};

template <GemmConfig kConfig>
using EightSums = float4[Eights<kConfig>::kCount][2];

HP_DEVICE void add_quad(float4& to, const float4& value) {
  to.x += value.x;
  to.y += value.y;
  to.z += value.z;
  to.w += value.w;
}

// What the stream's blocks have staged, in the order of K.
template <GemmConfig kConfig>
HP_DEVICE void add_shares(const Eights<kConfig>& eights, int shares, const char* staged,
                          EightSums<kConfig>& sums) {
  const auto offset_of = [&](int i) {
    return eights.at(i) / 8 * GemmConfig::kStagedRowBytes + eights.at(i) % 8 * 32;
  };
  if (shares == 1) {
#pragma unroll
    for (int i = 0; i < eights.kCount; ++i) {
      if (!eights.has(i)) continue;
      const auto* const from = reinterpret_cast<const float4*>(staged + offset_of(i));
      sums[i][0] = from[0];
      sums[i][1] = from[1];
    }
    return;
  }
  constexpr int kAtOnce = 2;  // shares are a power of two
#pragma unroll 1
  for (int share = 0; share < shares; share += kAtOnce) {
    EightSums<kConfig> there[kAtOnce];
#pragma unroll
    for (int at = 0; at < kAtOnce * eights.kCount; ++at) {
      const int i = at % eights.kCount;
      if (!eights.has(i)) continue;
      const auto block = static_cast<std::uint32_t>(share + at / eights.kCount);
      const std::uint32_t from =
          shared_address_in(staged, block) + static_cast<std::uint32_t>(offset_of(i));
      there[at / eights.kCount][i][0] = load_quad_of_cluster(from);
      there[at / eights.kCount][i][1] = load_quad_of_cluster(from + 16);
    }
#pragma unroll
    for (int at = 0; at < kAtOnce * eights.kCount; ++at) {
      const int i = at % eights.kCount;
      if (!eights.has(i)) continue;
      add_quad(sums[i][0], there[at / eights.kCount][i][0]);
      add_quad(sums[i][1], there[at / eights.kCount][i][1]);
    }
  }
}

// Quads of sums from one stream's part to the next one's.
template <GemmConfig kConfig>
HP_DEVICE constexpr int part_quads() {
  return kConfig.consumers() * kConfig.tile_m * 16;
}

// Where a consumer's sums of a stream's part lie, of rows from `first` on: the first four columns
// of all eights, then the others.
template <GemmConfig kConfig>
HP_DEVICE uint4* part_of(const GemmArgs& args, int stream, int consumer, int first) {
  return reinterpret_cast<uint4*>(args.partials) + stream * part_quads<kConfig>() +
         (consumer * kConfig.tile_m + first) * 16;
}

template <GemmConfig kConfig>
HP_DEVICE void leave_part(const Eights<kConfig>& eights, uint4* to,
                          const EightSums<kConfig>& sums) {
#pragma unroll
  for (int i = 0; i < eights.kCount; ++i) {
    if (!eights.has(i)) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float4& from = sums[i][half];
      store_part(to + half * eights.kAll + eights.at(i), present(from.x), present(from.y),
                 present(from.z), present(from.w));
    }
  }
}

// kParts consecutive parts, once all are there, added to `before` in the order of the parts.
template <GemmConfig kConfig, int kParts>
HP_DEVICE void take_parts(const Eights<kConfig>& eights, uint4* first, EightSums<kConfig>& before) {
  constexpr int kQuads = Eights<kConfig>::kCount * 2;
  constexpr int kStride = part_quads<kConfig>();
  const auto place = [&](int part, int quad) {
    return first + part * kStride + quad % 2 * eights.kAll + eights.at(quad / 2);
  };
  uint4 quads[kParts][kQuads];
  bool here = false;
  while (!here) {
    here = true;
#pragma unroll
    for (int at = 0; at < kParts * kQuads; ++at) {
      if (eights.has(at % kQuads / 2)) {
        quads[at / kQuads][at % kQuads] = load_part(place(at / kQuads, at % kQuads));
      }
    }
#pragma unroll
    for (int at = 0; at < kParts * kQuads; ++at) {
      if (eights.has(at % kQuads / 2)) here = here && !is_absent(quads[at / kQuads][at % kQuads]);
    }
  }
#pragma unroll
  for (int at = 0; at < kParts * kQuads; ++at) {
    if (!eights.has(at % kQuads / 2)) continue;
    const uint4& quad = quads[at / kQuads][at % kQuads];
    store_part(place(at / kQuads, at % kQuads), kAbsent, kAbsent, kAbsent, kAbsent);
    add_quad(before[at % kQuads / 2][at % 2],
             make_float4(__uint_as_float(quad.x), __uint_as_float(quad.y), __uint_as_float(quad.z),
                         __uint_as_float(quad.w)));
  }
}

// The same of all parts from `part` to the one before `end`, kParts at a look while there are so
// many, then half of it.
template <GemmConfig kConfig, int kParts>
HP_DEVICE void take_all(const Eights<kConfig>& eights, uint4* part, const uint4* end,
                        EightSums<kConfig>& before) {
  constexpr int kStep = kParts * part_quads<kConfig>();
#pragma unroll 1
  for (; part + kStep <= end; part += kStep) take_parts<kConfig, kParts>(eights, part, before);
  if constexpr (kParts > 1) take_all<kConfig, kParts / 2>(eights, part, end, before);
}

// The owner's part comes behind those of lower streams, in the order of K. They end by themselves:
// blocks are dispatched in the order of their index, which CUB's scans rely on too, so that lower
// ones run; these wait for lower ones alone, and leave something even where a wait expired.
template <GemmConfig kConfig>
HP_DEVICE void add_parts(const GemmArgs& args, const Eights<kConfig>& eights,
                         const StreamWalk& walk, int consumer, int first,
                         EightSums<kConfig>& sums) {
  const int first_stream = walk.first_stream();
  if (first_stream == walk.stream()) return;
  EightSums<kConfig> before = {};
  take_all<kConfig, parts_at_once(kConfig.tile_m)>(
      eights, part_of<kConfig>(args, first_stream, consumer, first),
      part_of<kConfig>(args, walk.stream(), consumer, first), before);
#pragma unroll
  for (int i = 0; i < eights.kCount; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      add_quad(before[i][half], sums[i][half]);
      sums[i][half] = before[i][half];
    }
  }
}

}  // namespace harpe::device
