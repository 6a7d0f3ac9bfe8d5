#pragma once

#include "exec/cuda/kernels/attention/device/decode_exchange.cuh"
#include "exec/cuda/kernels/attention/device/decode_states.cuh"

// The end of a part. If the block has all keys of the pair, its state is the result. Otherwise the
// block with the last part of a bunch (parts_of_bunch) joins the parts of the bunch, and the block
// with the last part of the pair joins all bunches, in a fixed order, so the bits never change. The
// other blocks leave their states in memory (DecodeStates). A block leaves at most one state, that
// of its first part, and joins at most once, after all its other work: a block that joins a bunch
// and leaves the result has no other part. It waits only for lower blocks, which the GPU dispatches
// earlier and which wait only for lower blocks in turn.
namespace harpe::device {

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
        piece_(piece),
        states_(shared, place, piece.first) {
    if constexpr (!kParks) find_targets(0);
  }

  HP_DEVICE void run(State& state) {
    add_warps(state);
    if (!joins()) {
      leave(state);
      return;
    }
    end_part(state);
    if constexpr (kConfig.exchanges) {
      if (is_last()) {
        sync();
        DecodeOutbox<kConfig>(shared_, place_).count(piece_.group);
      }
    }
  }

 private:
  using Column = DecodeColumn<kConfig>;
  using Columns = DecodeColumns<kConfig>;
  using Eight = DecodeEight<kConfig>;
  using States = DecodeStates<kConfig>;
  static constexpr int kOwn = kConfig.columns / 4;  // columns of a thread
  static constexpr bool kSplitKeys = splits_keys(kConfig);
  static constexpr bool kParks = parks_sums(kConfig);
  static constexpr int kBlocks = value_blocks(kConfig);
  static constexpr int kQuads = State::kSums / 4;  // of a block of values
  static constexpr int kFetched = States::kFetched;
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

  // Where the compiler would compute too much of it ahead, registers would spill.
  [[nodiscard]] HP_DEVICE States states() const {
    if constexpr (kParks && !kConfig.exchanges) {
      return States(shared_, place_.anew(), piece_.first);
    } else {
      return states_;
    }
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

  // The thread's columns of the i-th eight.
  [[nodiscard]] HP_DEVICE Eight eight_of(const State& state, int i) const {
    Eight columns;
    columns.set_weights(weights_of_eight(state, i));
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      columns.set_sums(block, kParks ? shared_.parked(block * kQuads + i, place_.thread)
                                     : quad_of(state.sums[block], i));
    }
    return columns;
  }

  // References and sums of weights of the thread's columns of the i-th eight.
  [[nodiscard]] HP_DEVICE float4 weights_of_eight(const State& state, int i) const {
    return {reference_of(state, 2 * i), weights_of(state, 2 * i), reference_of(state, 2 * i + 1),
            weights_of(state, 2 * i + 1)};
  }

  HP_DEVICE static float4 quad_of(const float (&sums)[State::kSums], int i) {
    return {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
  }

  // Whether the i-th eight columns are in use; with few columns they always are.
  [[nodiscard]] HP_DEVICE bool is_used(int i) const { return !kParks || 8 * i < results_.columns; }

  HP_DEVICE void leave(const State& state) const {
    if (!has_sums()) return;
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      if (!is_used(i)) continue;
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        states().leave_sums(piece_.part, i, block, quad_of(state.sums[block], i));
      }
      if (place_.thread < 4) states().leave_weights(piece_.part, i, weights_of_eight(state, i));
    }
  }

  HP_DEVICE void leave(const Eight& own, int i) const {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      states().leave_sums(piece_.part, i, block, own.sums(block));
    }
    if (place_.thread < 4) states().leave_weights(piece_.part, i, own.weights());
  }

  HP_DEVICE void end_part(const State& state) {
    if constexpr (kParks) park(state);
#pragma unroll 1
    for (int first = 0; first < kQuads; first += kFetched) {
      if (!is_used(first)) continue;
      Eight own[kFetched];
#pragma unroll
      for (int i = 0; i < kFetched; ++i) own[i] = eight_of(state, first + i);
      if constexpr (kParks) find_targets(first);
      join(own, first);
      if (!has_sums()) continue;
#pragma unroll
      for (int i = 0; i < kFetched; ++i) {
        if (is_last()) {
          store(own[i].first, targets_[i][0]);
          store(own[i].second, targets_[i][1]);
        } else {
          leave(own[i], first + i);
        }
      }
    }
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

  // Joins the states of other parts to `own`, which begins with eight columns `eight`, in order.
  HP_DEVICE void join(Eight (&own)[kFetched], int eight) const {
    const int all = joined();
#pragma unroll 1
    for (int first = 0; first < all; first += States::kMostFetched) {
      const int rest = all - first;
      const int count = rest < States::kMostFetched ? rest : States::kMostFetched;
      states().fetch(eight, count, [&](int i) { return part_of(first + i); });
      sync();
#pragma unroll
      for (int at = 0; at < kFetched; ++at) states().add(own[at], count, at);
      if (kFetched < kQuads || count < rest) sync();  // other states will be there
    }
  }

  // Of kFetched eights of columns.
  HP_DEVICE void find_targets(int first) {
#pragma unroll
    for (int i = 0; i < kFetched; ++i) {
      targets_[i][0] = target_of(8 * (first + i) + place_.lane % 4 * 2);
      targets_[i][1] = target_of(8 * (first + i) + place_.lane % 4 * 2 + 1);
    }
  }

  [[nodiscard]] HP_DEVICE DecodeTarget target_of(int column) const {
    if (column >= results_.columns) return {};
    if constexpr (kConfig.exchanges) {
      return DecodeOutbox<kConfig>(shared_, place_).target(piece_.sequence, piece_.group, column);
    } else {
      const int query = column / results_.group;
      const std::int64_t head = piece_.group * results_.group.number + column % results_.group;
      float* const lse =
          results_.lse == nullptr || place_.thread >= 4
              ? nullptr
              : results_.lse + offset_of(results_.lse_strides, piece_.sequence, query, head);
      const std::int64_t at =
          offset_of(results_.strides, piece_.sequence, query, head) + value_of<kConfig>(place_);
      return {element_of<kConfig.output>(results_.output, at), lse, nullptr};
    }
  }

  HP_DEVICE void store(const Column& own, const DecodeTarget& to) const {
    if constexpr (kConfig.exchanges) {
      if (to.output != nullptr || to.kept != nullptr) {
        DecodeOutbox<kConfig>(shared_, place_).store(own, to);
      }
    } else {
      if (to.output != nullptr) store_column<kConfig.output>(own, to);
    }
  }

  const DecodeShared<kConfig>& shared_;
  DecodeSync& sync_;
  const DecodeResults& results_;
  const DecodePlace& place_;
  const DecodePiece& piece_;
  States states_;
  DecodeTarget targets_[kFetched][2];
};

}  // namespace harpe::device
