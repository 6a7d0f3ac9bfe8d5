#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/kernels/attention/device/attention_shared.cuh"
#include "exec/cuda/kernels/attention/device/attention_softmax.cuh"

// The epilogue of a query tile: threads store registers directly to the destination, which may be
// on another GPU.
namespace harpe::device {

HP_DEVICE void store_vector(void* to, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                            std::uint32_t d) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

// Transposes 4 x 4 words in a quad: thread k holds word k of rows 0 to 3, then all words of row k.
HP_DEVICE void transpose_quad(std::uint32_t (&pieces)[4]) {
  const bool odd = (threadIdx.x & 1) != 0;
  const bool upper = (threadIdx.x & 2) != 0;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const std::uint32_t got = __shfl_xor_sync(0xFFFFFFFF, odd ? pieces[i] : pieces[i + 1], 1);
    (odd ? pieces[i] : pieces[i + 1]) = got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t got = __shfl_xor_sync(0xFFFFFFFF, upper ? pieces[i] : pieces[i + 2], 2);
    (upper ? pieces[i] : pieces[i + 2]) = got;
  }
}

// Stores the thread's row `row` (0 or 1) of an accumulator times `factor`; `to` is the row's first
// element. With 16-bit outputs a quad writes 64 bytes at once.
template <Element kTo, int N>
HP_DEVICE void store_row(void* to, const float (&values)[N], int row, float factor, bool exists) {
  const int lane = static_cast<int>(threadIdx.x) % 4;
  auto* const bytes = static_cast<std::uint8_t*>(to);
  if constexpr (kTo == Element::F32) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      auto* const pair = reinterpret_cast<float2*>(bytes + i * 8 + lane * 8);
      if (exists) *pair = {values[i + 2 * row] * factor, values[i + 2 * row + 1] * factor};
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 16) {
      std::uint32_t pieces[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int at = i + 4 * k + 2 * row;
        pieces[k] = pack<kTo>(values[at] * factor, values[at + 1] * factor);
      }
      transpose_quad(pieces);
      if (exists) {
        store_vector(bytes + i * 4 + lane * 16, pieces[0], pieces[1], pieces[2], pieces[3]);
      }
    }
  }
}

HP_DEVICE std::int64_t offset_of(const AttentionStrides& strides, const QueryTile& tile, int row) {
  return tile.batch * strides.batch + tile.head * strides.head + row * strides.row;
}

// By the whole warpgroup; `row` is the thread's first row, counted from the panel's start.
template <AttentionConfig kConfig, int N>
HP_DEVICE void store_results(const AttentionPanel& panel, const QueryTile& tile, int row,
                             const float (&output)[N], const SoftmaxRows& rows) {
  constexpr float kLn2 = 0.6931471805599453F;
  constexpr int kBytes = kConfig.output == Element::F32 ? 4 : 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int at = row + 8 * half;
    const bool exists = at < panel.rows;
    const float sum = quad_sum(rows.sum[half]);
    const float factor = sum > 0 ? 1.0F / sum : 0.0F;
    void* const to =
        static_cast<std::uint8_t*>(panel.output) + offset_of(panel.strides, tile, at) * kBytes;
    store_row<kConfig.output>(to, output, half, factor, exists);
    if (panel.lse != nullptr && exists && threadIdx.x % 4 == 0) {
      panel.lse[offset_of(panel.lse_strides, tile, at)] =
          sum > 0 ? (rows.reference[half] + log2_fast(sum)) * kLn2 : minus_infinity();
    }
  }
}

// After the warpgroup's stores: a barrier of its threads, then one thread fences at system scope
// and adds one to the counter. A thread that acquires the counter at system scope sees the stores.
// `barrier`: a named barrier of this warpgroup alone.
HP_DEVICE void publish_stores(std::uint32_t* counter, int barrier) {
  sync_threads(barrier, kWarpgroup);
  if (threadIdx.x % kWarpgroup != 0) return;
  fence_system();
  add_relaxed_system(counter, 1);
}

// Loads the carried state; rows that do not exist start empty.
template <AttentionConfig kConfig, int N>
HP_DEVICE void load_carried(const AttentionArgs& args, const QueryTile& tile, int row,
                            float (&output)[N], SoftmaxRows& rows) {
  const AttentionPanel& panel = args.panels[tile.panel];
  const int lane = static_cast<int>(threadIdx.x) % 4;
  rows = SoftmaxRows::empty();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int at = row + 8 * half;
    const bool exists = at < panel.rows;
    const float lse =
        exists ? panel.carried_lse[offset_of(panel.lse_strides, tile, at)] : minus_infinity();
    rows.carry(half, lse, args.scale_log2, args.slack, lane == 0);
    const float* const from =
        panel.carried_output + offset_of(panel.carried_strides, tile, at) + lane * 2;
    const bool any = lse > minus_infinity();
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const float2 pair = any ? *reinterpret_cast<const float2*>(from + i * 2) : float2{0, 0};
      output[i + 2 * half] = pair.x;
      output[i + 2 * half + 1] = pair.y;
    }
  }
}

}  // namespace harpe::device
