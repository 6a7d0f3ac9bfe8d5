#pragma once

#include "exec/cuda/device/fences.cuh"
#include "exec/cuda/device/parts.cuh"
#include "exec/cuda/kernels/attention/device/decode_exchange.cuh"

// The end of a part. If the block has all keys of the pair, its state is the result. Otherwise the
// block with the last part of a bunch (parts_of_bunch) joins the parts of the bunch, and the block
// with the last part of the pair joins all bunches, in a fixed order, so the bits never change. The
// other blocks leave their states in memory without a flag: that memory holds kAbsent wherever no
// value is, and no stored value equals it. A joining block polls until every value has arrived
// (relaxed, at GPU scope) and stores kAbsent back for the next launch. A block leaves at most one
// state, that of its first part, and joins at most once, after all its other work: a block that
// joins a bunch and leaves the result has no other part. It waits only for lower blocks, which the
// GPU dispatches earlier and which wait only for lower blocks in turn.
namespace harpe::device {

HP_DEVICE void store_state(float4* to, const float4& state) {
  store_part(reinterpret_cast<uint4*>(to), present(state.x), present(state.y), present(state.z),
             present(state.w));
}

HP_DEVICE float4 load_state(const float4* from) {
  float4 state;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(state.x), "=f"(state.y), "=f"(state.z), "=f"(state.w)
               : "l"(from)
               : "memory");
  return state;
}

HP_DEVICE bool is_absent(const float4& state) {
  return __float_as_uint(state.x) == kAbsent || __float_as_uint(state.y) == kAbsent ||
         __float_as_uint(state.z) == kAbsent || __float_as_uint(state.w) == kAbsent;
}

// Used by all consumer threads.
template <DecodeConfig kConfig>
class DecodeFinish {
 public:
  using State = DecodeState<kConfig>;

  HP_DEVICE DecodeFinish(const DecodeShared<kConfig>& shared, const DecodePlace& place,
                         const DecodePiece& piece)
      : shared_(shared),
        sync_(shared.sync()),
        results_(shared.sync().results),
        place_(place),
        piece_(piece) {}

  HP_DEVICE void run(State& state) const {
    add_warps(state);
    if (!joins()) {
      leave(state);
      return;
    }
    if (has_sums()) end_part(state);
    if constexpr (kConfig.exchanges) {
      if (is_last()) {
        sync();
        DecodeOutbox<kConfig>(shared_, place_).count(piece_.group);
      }
    }
    if (piece_.parts > 1) clear_columns();
  }

 private:
  using Column = DecodeColumn<kConfig>;
  using Columns = DecodeColumns<kConfig>;
  static constexpr int kOwn = kConfig.columns / 4;  // columns of a thread
  static constexpr bool kSplitKeys = splits_keys(kConfig);
  static constexpr bool kParks = parks_sums(kConfig);
  static constexpr int kBlocks = value_blocks(kConfig);
  static constexpr int kQuads = State::kSums / 4;  // of a block of values
  static constexpr int kPairs = kOwn / 2;
  // As many states as registers hold.
  static constexpr int kAhead = kParks ? 3 : kSplitKeys && kConfig.columns > 8 ? 6 : 8;
  static constexpr int kThreads = state_threads(kConfig);
  static constexpr int kFinish = 3;  // named barrier

  [[nodiscard]] HP_DEVICE bool is_last() const { return piece_.part + 1 == piece_.parts; }
  // Whether the block joins other parts, or has the only one.
  [[nodiscard]] HP_DEVICE bool joins() const {
    return is_last() || piece_.lower + 1 == piece_.bunch;
  }
  // The states that the block joins to its own: the lower parts of its bunch, then, for the last
  // part of the pair, the last parts of all lower bunches.
  [[nodiscard]] HP_DEVICE int joined() const {
    return piece_.lower + (is_last() ? piece_.part / piece_.bunch : 0);
  }
  [[nodiscard]] HP_DEVICE int part_of(int joined) const {
    const int of_bunches = joined - piece_.lower;
    return of_bunches < 0 ? piece_.part + of_bunches : (of_bunches + 1) * piece_.bunch - 1;
  }

  HP_DEVICE static void sync() { sync_threads(kFinish, kDecodeConsumers); }

  // With heads of 64 the first warpgroup holds the sums of both once add_warps has run.
  [[nodiscard]] HP_DEVICE bool has_sums() const { return place_.thread < kThreads; }

  // Adds the sums of weights of all warps, so that each thread has those of all its columns; or
  // leaves them in shared memory, with references, if the thread has not scored all its columns.
  // With heads of 64 it adds the sums of values of the second warpgroup to those of the first,
  // through the buffer of weights, which no warp reads after the first barrier.
  HP_DEVICE void add_warps(State& state) const {
#pragma unroll
    for (int i = 0; i < Columns::kScored / 4; ++i) {
      const int column = Columns::first_scored(place_) + place_.column(i);
      const float sum = sum_of_rows(state.weights[i]);
      if (place_.lane < 4) sync_.columns[place_.thread / 32][column] = sum;
      if constexpr (Columns::kSplit) {
        if (place_.warp == 0 && place_.lane < 4) sync_.handed[column] = state.references[i];
      }
    }
    sync();
    if constexpr (!Columns::kSplit) {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) state.weights[i] = sum_of_warps(place_.column(i));
    }
    if constexpr (kSplitKeys) {
      auto* const other = reinterpret_cast<float4*>(shared_.weights(0));
      if (!has_sums()) {
#pragma unroll
        for (int i = 0; i < kQuads; ++i) {
          other[i * kThreads + place_.thread - kThreads] = quad_of(state.sums[0], i);
        }
      }
      sync();
      if (has_sums()) {
#pragma unroll
        for (int i = 0; i < kQuads; ++i) {
          const float4 quad = other[i * kThreads + place_.thread];
          state.sums[0][4 * i] += quad.x;
          state.sums[0][4 * i + 1] += quad.y;
          state.sums[0][4 * i + 2] += quad.z;
          state.sums[0][4 * i + 3] += quad.w;
        }
      }
    }
    sync();  // weights may be written again
  }

  // The columns are written again only after all consumers have met at the next piece's first tile.
  [[nodiscard]] HP_DEVICE float sum_of_warps(int column) const {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < Columns::kWarps; ++warp) {
      sum += sync_.columns[Columns::first_warp(column) + warp][column];
    }
    return sum;
  }

  // Of the thread's i-th column, once add_warps has run.
  [[nodiscard]] HP_DEVICE float reference_of(const State& state, int i) const {
    if constexpr (Columns::kSplit) {
      return sync_.handed[place_.column(i)];
    } else {
      return state.references[i];
    }
  }
  [[nodiscard]] HP_DEVICE float weights_of(const State& state, int i) const {
    if constexpr (Columns::kSplit) {
      return sum_of_warps(place_.column(i));
    } else {
      return state.weights[i];
    }
  }

  // The thread's two columns of eight.
  struct Eight {
    Column first;
    Column second;
  };

  HP_DEVICE static void set_sums(Eight& columns, int block, const float4& quad) {
    columns.first.sums[2 * block] = quad.x;
    columns.second.sums[2 * block] = quad.y;
    columns.first.sums[2 * block + 1] = quad.z;
    columns.second.sums[2 * block + 1] = quad.w;
  }

  [[nodiscard]] HP_DEVICE Eight eight_of(const State& state, int i) const {
    Eight columns;
    columns.first.reference = reference_of(state, 2 * i);
    columns.first.weights = weights_of(state, 2 * i);
    columns.second.reference = reference_of(state, 2 * i + 1);
    columns.second.weights = weights_of(state, 2 * i + 1);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      set_sums(columns, block,
               kParks ? shared_.parked(block * kQuads + i, place_.thread)
                      : quad_of(state.sums[block], i));
    }
    return columns;
  }

  HP_DEVICE static float4 quad_of(const float (&sums)[State::kSums], int i) {
    return {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
  }

  [[nodiscard]] HP_DEVICE float4* state_of(int part) const {
    return reinterpret_cast<float4*>(results_.states +
                                     std::int64_t{piece_.first + part} * state_floats(kConfig));
  }
  // Where a state has the thread's i-th quad of a block of values, and the references and sums of
  // weights of its columns 2 i and 2 i + 1.
  [[nodiscard]] HP_DEVICE int quad_at(int block, int i) const {
    return (block * kQuads + i) * kThreads + place_.thread;
  }
  [[nodiscard]] HP_DEVICE int columns_at(int i) const {
    return kBlocks * kQuads * kThreads + place_.column(2 * i) / 2;
  }

  // Whether the i-th eight columns are in use; with few columns they always are.
  [[nodiscard]] HP_DEVICE bool is_used(int i) const { return !kParks || 8 * i < results_.columns; }

  HP_DEVICE void leave(const State& state) const {
    float4* const to = state_of(piece_.part);
    if (has_sums()) {
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
        for (int i = 0; i < kQuads; ++i) {
          if (!is_used(i)) continue;
          store_state(to + quad_at(block, i), quad_of(state.sums[block], i));
        }
      }
    }
    if (place_.thread >= 4) return;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      if (!is_used(i)) continue;
      store_state(to + columns_at(i),
                  {reference_of(state, 2 * i), weights_of(state, 2 * i),
                   reference_of(state, 2 * i + 1), weights_of(state, 2 * i + 1)});
    }
  }

  // Each sum of a state is read by one thread, which clears it; those of columns by several.
  HP_DEVICE void end_part(const State& state) const {
    if constexpr (kParks) park(state);
#pragma unroll(kParks ? 1 : kQuads)
    for (int i = 0; i < kQuads; ++i) {
      if (!is_used(i)) continue;
      Eight own = eight_of(state, i);
      join(own, i);
      if (is_last()) {
        store(own.first, 8 * i + place_.lane % 4 * 2);
        store(own.second, 8 * i + place_.lane % 4 * 2 + 1);
      } else {
        leave(own, i);
      }
    }
  }

  HP_DEVICE void leave(const Eight& own, int i) const {
    float4* const to = state_of(piece_.part);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      store_state(to + quad_at(block, i),
                  {own.first.sums[2 * block], own.second.sums[2 * block],
                   own.first.sums[2 * block + 1], own.second.sums[2 * block + 1]});
    }
    if (place_.thread >= 4) return;
    store_state(to + columns_at(i),
                {own.first.reference, own.first.weights, own.second.reference, own.second.weights});
  }

  // No warp reads queries or weights any more. Each thread reads its own sums alone.
  HP_DEVICE void park(const State& state) const {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        shared_.parked(block * kQuads + i, place_.thread) = quad_of(state.sums[block], i);
      }
    }
  }

  // Joins the states of other parts to `own`, in order; polls kAhead of them at a time.
  HP_DEVICE void join(Eight& own, int eight) const {
#pragma unroll 1
    for (int first = 0, all = joined(); first < all; first += kAhead) {
      const int count = all - first;
      float4 sums[kAhead][kBlocks];
      float4 columns[kAhead];
      // Left undefined where fewer states remain, they would occupy registers in the whole kernel.
      if constexpr (kParks) fill(sums, columns);
      bool absent = true;
      while (absent) {
        absent = false;
#pragma unroll
        for (int at = 0; at < kAhead; ++at) {
          if (at >= count) continue;
          const float4* const from = state_of(part_of(first + at));
#pragma unroll
          for (int block = 0; block < kBlocks; ++block) {
            sums[at][block] = load_state(from + quad_at(block, eight));
          }
          columns[at] = load_state(from + columns_at(eight));
        }
#pragma unroll
        for (int at = 0; at < kAhead; ++at) {
          if (at >= count) continue;
#pragma unroll
          for (int block = 0; block < kBlocks; ++block) {
            absent = absent || is_absent(sums[at][block]);
          }
          absent = absent || is_absent(columns[at]);
        }
      }
#pragma unroll
      for (int at = 0; at < kAhead; ++at) {
        if (at >= count) continue;
        add_part(own, sums[at], columns[at]);
#pragma unroll
        for (int block = 0; block < kBlocks; ++block) {
          clear(state_of(part_of(first + at)) + quad_at(block, eight));
        }
      }
    }
  }

  HP_DEVICE static void fill(float4 (&sums)[kAhead][kBlocks], float4 (&columns)[kAhead]) {
#pragma unroll
    for (int at = 0; at < kAhead; ++at) {
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) sums[at][block] = {};
      columns[at] = {};
    }
  }

  HP_DEVICE static void add_part(Eight& own, const float4 (&sums)[kBlocks], const float4& columns) {
    Eight part{.first = {.reference = columns.x, .weights = columns.y},
               .second = {.reference = columns.z, .weights = columns.w}};
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) set_sums(part, block, sums[block]);
    add_state(own.first, part.first);
    add_state(own.second, part.second);
  }

  // Clears the values of columns, once all threads have read them (a barrier).
  HP_DEVICE void clear_columns() const {
    sync();
    const int columns = kConfig.columns / 2;
    for (int i = place_.thread; i < joined() * columns; i += kDecodeConsumers) {
      clear(state_of(part_of(i / columns)) + kBlocks * kQuads * kThreads + i % columns);
    }
  }

  HP_DEVICE static void clear(float4* at) {
    const float absent = __uint_as_float(kAbsent);
    *at = {absent, absent, absent, absent};
  }

  HP_DEVICE void store(const Column& own, int column) const {
    if (column >= results_.columns) return;
    if constexpr (kConfig.exchanges) {
      DecodeOutbox<kConfig>(shared_, place_).store(own, piece_.sequence, piece_.group, column);
    } else {
      const int query = column / results_.group;
      const std::int64_t head = piece_.group * results_.group.number + column % results_.group;
      const std::int64_t at = offset_of(results_.strides, piece_.sequence, query, head);
      float* const lse =
          results_.lse == nullptr || place_.thread >= 4
              ? nullptr
              : results_.lse + offset_of(results_.lse_strides, piece_.sequence, query, head);
      store_column<kConfig.output>(own, results_.output, at + value_of<kConfig>(place_), lse);
    }
  }

  const DecodeShared<kConfig>& shared_;
  DecodeSync& sync_;
  const DecodeResults& results_;
  const DecodePlace& place_;
  const DecodePiece& piece_;
};

}  // namespace harpe::device
