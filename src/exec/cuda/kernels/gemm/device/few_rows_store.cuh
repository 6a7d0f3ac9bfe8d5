#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/device/wait.cuh"
#include "exec/cuda/device/wgmma.cuh"
#include "exec/cuda/kernels/gemm/device/few_rows_order.h"
#include "exec/cuda/kernels/gemm/device/gemm_store.cuh"

// What becomes of sums of few rows. A stream that has a part of a tile leaves its sums in memory
// for the tile's owner, and no flag beside them: each value is its own. Memory for parts holds
// kAbsent wherever nothing is, which no sum is; the owner waits until all values are others, adds
// them in the order of K, and puts kAbsent back for the next launch. Values are exchanged at the
// scope of the GPU, each for itself, and nothing else hangs on their order.
namespace harpe::device {

inline constexpr std::uint32_t kAbsent = 0xffffffffU;  // a NaN

// What is needed of panels to store them, in shared memory from the start: arguments that are read
// for the first time behind a long stream come from memory.
struct RowsPanel {
  void* c;
  std::int64_t c_stride;
  std::int32_t begin;  // row of the tile
  std::int32_t rows;
  std::int32_t addends;
  std::int32_t first_addend;
};
inline constexpr int kMostRowPanels = 16;

// Shared memory of a block: barriers, stages of A and B, each aligned to 1,024 bytes, then what a
// consumer stages of C.
template <GemmConfig kConfig>
struct FewRowsShared {
  struct Control {
    Barrier filled[kConfig.stages];   // by two loads, of A and of B
    Barrier emptied[kConfig.stages];  // by all warps that multiply
    std::uint32_t poisoned;
    std::uint32_t awaited;  // panels that somebody waits for, a bit each
    std::int32_t rows_end;  // of all panels
    RowsPanel panels[kMostRowPanels];
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
  [[nodiscard]] HP_DEVICE char* a(int stage) const {
    return base + GemmConfig::kBarrierBytes + stage * kConfig.stage_bytes();
  }
  [[nodiscard]] HP_DEVICE char* b(int stage) const { return a(stage) + kConfig.a_bytes(); }
  [[nodiscard]] HP_DEVICE char* staged(int consumer) const {
    return a(kConfig.stages) + consumer * kConfig.staged_bytes();
  }
};

// Rows of the tile that a panel takes.
HP_DEVICE int rows_in_tile(const GemmPanel& panel) { return box_rows(panel.rows); }

// Quads of sums from one stream's part to the next one's.
template <GemmConfig kConfig>
HP_DEVICE constexpr int part_quads() {
  return kConfig.consumers() * (kConfig.tile_m / 8) * 128;
}

// Where this thread's sums of a stream's part lie: four at a time, 128 threads side by side.
template <GemmConfig kConfig>
HP_DEVICE uint4* part_of(const GemmArgs& args, int stream, int consumer) {
  return reinterpret_cast<uint4*>(args.partials) + stream * part_quads<kConfig>() +
         consumer * (kConfig.tile_m / 8) * 128 + threadIdx.x % 128;
}

HP_DEVICE void store_part(uint4* to, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                          std::uint32_t d) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

HP_DEVICE uint4 load_part(const uint4* from) {
  uint4 part;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(part.x), "=r"(part.y), "=r"(part.z), "=r"(part.w)
               : "l"(from)
               : "memory");
  return part;
}

HP_DEVICE bool is_absent(const uint4& part) {
  return part.x == kAbsent || part.y == kAbsent || part.z == kAbsent || part.w == kAbsent;
}

// Another NaN stays one.
HP_DEVICE std::uint32_t present(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return bits == kAbsent ? kAbsent - 1 : bits;
}

template <GemmConfig kConfig>
HP_DEVICE void leave_part(const GemmArgs& args, int stream, int consumer,
                          const float (&sums)[kConfig.tile_m / 2]) {
  uint4* const to = part_of<kConfig>(args, stream, consumer);
#pragma unroll
  for (int quad = 0; quad < kConfig.tile_m / 8; ++quad) {
    const float* const from = &sums[quad * 4];
    store_part(to + quad * 128, present(from[0]), present(from[1]), present(from[2]),
               present(from[3]));
  }
}

// kCount quads of each of kParts consecutive parts, once all are there, added to `before` in the
// order of the parts.
template <int kCount, int kParts, int kStride>
HP_DEVICE void take_parts(uint4* first, float (&before)[kCount * 4]) {
  uint4 quads[kParts][kCount];
  bool here = false;
  while (!here) {
    here = true;
#pragma unroll
    for (int at = 0; at < kParts * kCount; ++at) {
      quads[at / kCount][at % kCount] =
          load_part(first + at / kCount * kStride + at % kCount * 128);
    }
#pragma unroll
    for (int at = 0; at < kParts * kCount; ++at) {
      here = here && !is_absent(quads[at / kCount][at % kCount]);
    }
  }
#pragma unroll
  for (int at = 0; at < kParts * kCount; ++at) {
    const uint4& quad = quads[at / kCount][at % kCount];
    float* const to = &before[at % kCount * 4];
    store_part(first + at / kCount * kStride + at % kCount * 128, kAbsent, kAbsent, kAbsent,
               kAbsent);
    to[0] += __uint_as_float(quad.x);
    to[1] += __uint_as_float(quad.y);
    to[2] += __uint_as_float(quad.z);
    to[3] += __uint_as_float(quad.w);
  }
}

// The same of all parts from `part` to the one before `end`, kParts at a look while there are so
// many, then half of it.
template <int kCount, int kParts, int kStride>
HP_DEVICE void take_all(uint4* part, const uint4* end, float (&before)[kCount * 4]) {
#pragma unroll 1
  for (; part + kParts * kStride <= end; part += kParts * kStride) {
    take_parts<kCount, kParts, kStride>(part, before);
  }
  if constexpr (kParts > 1) take_all<kCount, kParts / 2, kStride>(part, end, before);
}

// The owner's part comes behind those of lower streams, in the order of K. They end by themselves:
// blocks are dispatched in the order of their index, which CUB's scans rely on too, so that lower
// ones run; these wait for lower ones alone, and leave something even where a wait expired.
template <GemmConfig kConfig>
HP_DEVICE void add_parts(const GemmArgs& args, const StreamWalk& walk, int consumer,
                         float (&sums)[kConfig.tile_m / 2]) {
  constexpr int kQuads = kConfig.tile_m / 8;
  constexpr int kAtOnce = quads_at_once(kConfig.tile_m);
  constexpr int kParts = parts_at_once(kConfig.tile_m);
  constexpr int kStride = part_quads<kConfig>();
  const int first = walk.first_stream();
  if (first == walk.stream()) return;
#pragma unroll
  for (int quad = 0; quad < kQuads; quad += kAtOnce) {
    float before[kAtOnce * 4] = {};
    take_all<kAtOnce, kParts, kStride>(part_of<kConfig>(args, first, consumer) + quad * 128,
                                       part_of<kConfig>(args, walk.stream(), consumer) + quad * 128,
                                       before);
#pragma unroll
    for (int i = 0; i < kAtOnce * 4; ++i) sums[quad * 4 + i] = before[i] + sums[quad * 4 + i];
  }
}

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

// Eight columns of a row; n and rows of C are multiples of 16 bytes.
template <GemmConfig kConfig>
HP_DEVICE void store_eight(const GemmArgs& args, const RowsPanel& panel, int row, int column,
                           const float4& low, const float4& high) {
  char* const to =
      static_cast<char*>(panel.c) +
      (static_cast<std::int64_t>(row) * panel.c_stride + column) * bytes_of(kConfig.out);
  if constexpr (kConfig.out == Element::F32) {
    if (column < args.n) *reinterpret_cast<float4*>(to) = low;
    if (column + 4 < args.n) *reinterpret_cast<float4*>(to + 16) = high;
  } else {
    if (column >= args.n) return;
    *reinterpret_cast<uint4*>(to) =
        make_uint4(pack<kConfig.out>(low.x, low.y), pack<kConfig.out>(low.z, low.w),
                   pack<kConfig.out>(high.x, high.y), pack<kConfig.out>(high.z, high.w));
  }
}

// Calls visit(panel, row in it, row in the tile, eighth of 64 columns) for what this thread stores
// of `count` rows of the tile from `first` on.
template <GemmConfig kConfig, class Visit>
HP_DEVICE void for_each_eight(const FewRowsShared<kConfig>& shared, int first, int count,
                              Visit visit) {
  const int end = shared.control().rows_end - first;
  const RowsPanel* panel = &shared.panel(0);
#pragma unroll 1
  for (int at = static_cast<int>(threadIdx.x) % 128; at < count * 8 && at / 8 < end; at += 128) {
    const int row = first + at / 8;
    while (row >= panel->begin + box_rows(panel->rows)) ++panel;
    if (row - panel->begin < panel->rows) visit(*panel, row - panel->begin, row, at % 8);
  }
}

// Where sums wait for their addends: the thread that keeps them is the one that takes them.
template <GemmConfig kConfig>
HP_DEVICE float4* kept_at(const GemmArgs& args, int row, int column) {
  const std::int64_t columns = static_cast<std::int64_t>(args.tiles) * kConfig.tile_n;
  return reinterpret_cast<float4*>(args.kept + row * columns + column);
}

// Rows of the tile from `first` on, to the panels that have them.
template <GemmConfig kConfig>
HP_DEVICE void store_staged(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                            const char* staged, int first, int first_column) {
  for_each_eight<kConfig>(
      shared, first, kConfig.staged_rows(),
      [&](const RowsPanel& panel, int row, int row_of_tile, int eighth) {
        const auto* const from = reinterpret_cast<const float4*>(
            staged + (row_of_tile - first) * GemmConfig::kStagedRowBytes + eighth * 32);
        const int column = first_column + eighth * 8;
        if (panel.addends == 0) {
          store_eight<kConfig>(args, panel, row, column, from[0], from[1]);
        } else {
          float4* const to = kept_at<kConfig>(args, row_of_tile, column);
          to[0] = from[0];
          to[1] = from[1];
        }
      });
}

template <GemmConfig kConfig, int kFirst = 0>
HP_DEVICE void store_rows(const GemmArgs& args, const FewRowsShared<kConfig>& shared, int consumer,
                          int first_column, const float (&sums)[kConfig.tile_m / 2]) {
  if constexpr (kFirst < kConfig.tile_m) {
    char* const staged = shared.staged(consumer);
    sync_threads(1 + consumer, 128);  // what was staged before is stored
    stage_rows<kConfig, kFirst>(staged, sums);
    sync_threads(1 + consumer, 128);
    store_staged<kConfig>(args, shared, staged, kFirst, first_column);
    store_rows<kConfig, kFirst + kConfig.staged_rows()>(args, shared, consumer, first_column, sums);
  }
}

// A consumer's thread, once its columns of a tile are stored: counts them for the panels that have
// addends, or for the others. Nothing of a poisoned kernel's was stored.
HP_DEVICE void publish_columns(const GemmArgs& args, std::uint32_t awaited, bool skipped,
                               bool with_addends) {
  for (int i = 0; i < args.panel_count; ++i) {
    if ((awaited >> i & 1) == 0) continue;
    const GemmPanel& panel = panel_of(args, i);
    if ((panel.addends != 0) != with_addends) continue;
    if (skipped) {
      give_up_block(panel);
    } else {
      publish_block(args, panel);
    }
  }
}

// Two of 16 bits and their sum with `low` and `high`.
template <Element kFrom>
HP_DEVICE void add_pair(std::uint32_t pair, float& low, float& high) {
  if constexpr (kFrom == Element::BF16) {
    low += __uint_as_float(pair << 16);
    high += __uint_as_float(pair & 0xffff0000U);
  } else {
    low += widen_f16(pair & 0xffffU);
    high += widen_f16(pair >> 16);
  }
}

// Eight columns of an addend, which another GPU may have stored: not through the first-level cache.
template <Element kFrom>
HP_DEVICE void add_eight(const GemmPiece& from, int row, int column, float4& low, float4& high) {
  const auto* const words = reinterpret_cast<const uint4*>(
      static_cast<const std::uint16_t*>(from.address) + row * from.stride + column);
  const uint4 eight = __ldcg(words);
  add_pair<kFrom>(eight.x, low.x, low.y);
  add_pair<kFrom>(eight.y, low.z, low.w);
  add_pair<kFrom>(eight.z, high.x, high.y);
  add_pair<kFrom>(eight.w, high.z, high.w);
}

// The consumer's columns of a tile of all panels that have addends, from where they were kept, with
// the addends in their order.
template <GemmConfig kConfig>
HP_DEVICE void add_addends(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                           int first_column) {
  for_each_eight<kConfig>(
      shared, 0, kConfig.tile_m, [&](const RowsPanel& panel, int row, int row_of_tile, int eighth) {
        const int column = first_column + eighth * 8;
        if (panel.addends == 0 || column >= args.n) return;
        const float4* const kept = kept_at<kConfig>(args, row_of_tile, column);
        float4 low = kept[0];
        float4 high = kept[1];
        for (int i = 0; i < panel.addends; ++i) {
          add_eight<kConfig.in>(piece_of(args, panel.first_addend + i), row, column, low, high);
        }
        store_eight<kConfig>(args, panel, row, column, low, high);
      });
}

// Once the stream has stored all that has no addends, so that ranks which add up what they send
// each other wait for nothing that waits for them.
template <GemmConfig kConfig>
HP_DEVICE void store_with_addends(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                                  StreamWalk walk, int consumer) {
  if (threadIdx.x % 128 == 0) {
    Waiter waiter(args.wait);
    for (int i = 0; i < args.panel_count; ++i) {
      const GemmPanel& panel = panel_of(args, i);
      for (int at = 0; at < panel.addends; ++at) {
        const int index = panel.first_addend + at;
        waiter.wait(piece_of(args, index).ready, index, [] { return true; });
      }
    }
    if (waiter.poisoned()) mark_poisoned(shared.control().poisoned);
  }
  sync_threads(1 + consumer, 128);
  const bool skip = any_of_threads(1 + consumer, 128, shared.poisoned());
  for (; walk.valid(); walk.next()) {
    if (!walk.is_owner()) continue;
    if (!skip) {
      add_addends<kConfig>(args, shared, walk.tile() * kConfig.tile_n + consumer * 64);
    }
    sync_threads(1 + consumer, 128);
    if (threadIdx.x % 128 == 0) publish_columns(args, shared.control().awaited, skip, true);
  }
}

// The consumer's columns of the tile, to all panels. Nothing of a poisoned kernel's is stored.
template <GemmConfig kConfig>
HP_DEVICE void store_columns(const GemmArgs& args, const FewRowsShared<kConfig>& shared,
                             int consumer, int first_column,
                             const float (&sums)[kConfig.tile_m / 2]) {
  // Asked together: the word may be set meanwhile.
  const bool skip = args.waits > 0 && any_of_threads(1 + consumer, 128, shared.poisoned());
  if (!skip) {
    store_rows<kConfig>(args, shared, consumer, first_column, sums);
  }
  const std::uint32_t awaited = shared.control().awaited;
  if (awaited == 0) return;
  sync_threads(1 + consumer, 128);
  if (threadIdx.x % 128 == 0) publish_columns(args, awaited, skip, false);
}

}  // namespace harpe::device
