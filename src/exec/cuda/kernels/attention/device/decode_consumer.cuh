#pragma once

#include "exec/cuda/kernels/attention/device/decode_store.cuh"

// The two consumer warpgroups. Keys and values are the M dimension of wgmma, the queries that share
// them its N dimension. scores = keys queries^T: each warpgroup has half of the keys, or half of
// the columns if keys hold their values. sums += values^T weights: each warpgroup has half of the
// values' elements over all keys; with heads of 64 all elements over its own keys. Weights pass
// between the two wgmmas through shared memory. Every thread keeps the references and sums of
// weights of the columns that it scores. Weights are 2^(score - reference); a reference moves once
// a weight would exceed 2^8. All consumer threads vote on that at the barrier that hands over the
// weights.
namespace harpe::device {

template <DecodeConfig kConfig>
class DecodeConsumer {
 public:
  HP_DEVICE DecodeConsumer(const DecodeArgs& args, DecodeShared<kConfig> shared)
      : args_(args), shared_(shared), sync_(shared.sync()), place_(DecodePlace::of_thread()) {}

  HP_DEVICE void run() {
    int lowest = 0;  // the lowest of the `ended` consecutive pairs that the block has ended
    int ended = 0;
    for (;;) {
      wait_barrier(&sync_.piece_filled[pieces_.slot], pieces_.parity);
      const DecodePiece piece = sync_.pieces[pieces_.slot];
      if (piece.tiles == 0) break;
      load_queries(piece);
      DecodeFinish<kConfig> finish(shared_, place_, piece);
      start();
      for (int tile = 0; tile < piece.tiles; ++tile) add_tile();
      Barrier* const emptied = &sync_.piece_emptied[pieces_.slot];
      pieces_.advance();
      if constexpr (!parks_sums(kConfig)) release(emptied);
      finish.run(state_);
      // Sums were in the buffers of queries and weights. No warp begins the next piece before all
      // have released this one.
      if constexpr (parks_sums(kConfig)) {
        fence_proxy_async_shared();
        release(emptied);
      }
      if (piece.part + 1 < piece.parts) continue;
      lowest = piece.sequence * sync_.results.kv_heads.number + piece.group;
      if constexpr (cuts_heads(kConfig)) {
        lowest = index_of(sync_.cuts, sync_.results.kv_heads, {piece.sequence, piece.group});
      }
      ++ended;
    }
    if constexpr (kConfig.exchanges) {
      const bool has_sums = place_.thread < state_threads(kConfig);
      DecodeOutbox<kConfig>(shared_, place_).add_up(lowest, ended, has_sums);
    }
  }

 private:
  using State = DecodeState<kConfig>;
  static constexpr int kTile = DecodeShared<kConfig>::kTile;
  using Columns = DecodeColumns<kConfig>;
  static constexpr int kScored = Columns::kScored;
  static constexpr int kBlocks = scored_blocks(kConfig);
  static constexpr int kScores = kScored / 2;
  static constexpr int kOwn = kScored / 4;  // columns that a thread scores
  static constexpr int kValueBlocks = value_blocks(kConfig);
  static constexpr bool kSplitColumns = Columns::kSplit;
  static constexpr bool kSplitKeys = splits_keys(kConfig);
  static constexpr int kVote = 1;  // named barriers
  static constexpr int kMove = 2;

  // Columns in use.
  [[nodiscard]] HP_DEVICE int used() const {
    return args_.group.number * args_.queries_per_sequence;
  }

  // Not by the copy engine, where they would come behind all keys of the ring: these need not wait
  // for the kernel before. Requires: no warp multiplies queries of the piece before.
  HP_DEVICE void load_queries(const DecodePiece& piece) const {
    constexpr int kUnits = kConfig.head_dim / 8;  // of 16 bytes
    const int thread = place_.anew().thread;
#pragma unroll 3
    for (int at = thread; at < used() * kUnits; at += kDecodeConsumers) {
      const int column = at / kUnits;
      const int unit = at % kUnits;
      const std::int64_t head = piece.group * args_.group.number + column % args_.group;
      const std::int64_t from =
          offset_of(args_.query_strides, piece.sequence, column / args_.group, head) + unit * 8;
      const auto* const queries = static_cast<const std::uint16_t*>(args_.queries) + from;
      const uint4 values = __ldcg(reinterpret_cast<const uint4*>(queries));
      const auto to = swizzled(unit / 8 * DecodeShared<kConfig>::kColumnBox, column, unit % 8 * 16);
      *reinterpret_cast<uint4*>(shared_.queries() + to) = values;
    }
    fence_proxy_async_shared();
    sync_threads(kMove, kDecodeConsumers);
  }

  HP_DEVICE void start() {
#pragma unroll
    for (int block = 0; block < kValueBlocks; ++block) {
#pragma unroll
      for (int i = 0; i < State::kSums; ++i) state_.sums[block][i] = 0;
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const bool exists = scored_column(i) < used();
      state_.references[i] = 0;
      state_.weights[i] = 0;
      limits_[i] = exists ? decode_nothing() : -decode_nothing();
    }
  }

  HP_DEVICE void add_tile() {
    multiply_keys();
    weigh();
    const int values = ring_.slot;
    wait_barrier(&sync_.filled[values], ring_.parity);
    clear_unseen(values);
    if (meet()) {
      move_references();
      weigh();
      meet();
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) state_.weights[i] += added_[i];
    multiply_values(values);
    release(&sync_.emptied[values]);
    ring_.advance();
    buffer_ ^= 1;
  }

  // Makes this thread's weights visible to the wgmmas of all consumers and meets them at a barrier.
  // True if a score of any thread exceeds its limit.
  HP_DEVICE bool meet() {
    fence_proxy_async_shared();
    return any_of_threads(kVote, kDecodeConsumers, exceeds_);
  }

  HP_DEVICE void multiply_keys() {
    const int slot = ring_.slot;
    const std::uint8_t* const own = shared_.slot(slot) + first_key(0) * 128;
    const std::uint8_t* const scored = shared_.queries() + Columns::first_scored(place_) * 128;
    const std::uint64_t all_keys = uniform(k_major(own));
    const std::uint64_t queries = uniform(k_major(scored));
    wait_barrier(&sync_.filled[slot], ring_.parity);
    begin_wgmmas();
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const std::uint64_t keys = all_keys + block * (64 * 128 >> 4);
#pragma unroll
      for (int k = 0; k < kConfig.head_dim / 16; ++k) {
        const std::uint64_t inside = k % 4 * kKMajorStep;
        Wgmma<kScored, kConfig.element, false>::multiply(
            scores_[block], keys + inside + k / 4 * (DecodeShared<kConfig>::kBox >> 4),
            queries + inside + k / 4 * (DecodeShared<kConfig>::kColumnBox >> 4), k > 0);
      }
    }
    commit_wgmmas();
    wait_wgmmas<0>();
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) pin(scores_[block]);
    hide_unseen(slot);
    if constexpr (values_in_keys(kConfig)) return;  // the slot has the values too
    release(&sync_.emptied[slot]);
    ring_.advance();
  }

  // The first key of a block of 64 keys that the warpgroup scores.
  HP_DEVICE int first_key(int block) const {
    return ((kSplitColumns ? 0 : place_.warpgroup * kBlocks) + block) * 64;
  }

  // The thread's i-th column of those that it scores.
  HP_DEVICE int scored_column(int i) const {
    return Columns::first_scored(place_) + place_.column(i);
  }

  HP_DEVICE void hide_unseen(int slot) {
    const DecodeStep& step = sync_.steps[slot];
    if (step.all != 0) return;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int key = first_key(block) + place_.row + 8 * half;
        if ((step.seen[key / 32] >> (key % 32) & 1) != 0) continue;
#pragma unroll
        for (int i = 0; i < kScores; i += 4) {
          scores_[block][i + 2 * half] = decode_nothing();
          scores_[block][i + 2 * half + 1] = decode_nothing();
        }
      }
    }
  }

  // Zeroes values of keys that do not exist. Their memory may hold NaN, and 0 x NaN is NaN. If keys
  // hold their values, the other warpgroup may still multiply them: it hides their scores, whatever
  // they are.
  HP_DEVICE void clear_unseen(int slot) {
    const DecodeStep& step = sync_.steps[slot];
    if (step.all != 0) return;
    constexpr int kUnits = kConfig.value_dim / 8;  // of 16 bytes
    const int unit = place_.thread % kUnits;
    std::uint8_t* const column =
        shared_.slot(slot) + unit / 8 * DecodeShared<kConfig>::kBox + unit % 8 * 16;
    for (int key = place_.thread / kUnits; key < kTile; key += kDecodeConsumers / kUnits) {
      if ((step.seen[key / 32] >> (key % 32) & 1) != 0) continue;
      *reinterpret_cast<uint4*>(column + key * 128) = {0, 0, 0, 0};
    }
  }

  // Turns scores into weights in shared memory, with the current references.
  HP_DEVICE void weigh() {
    exceeds_ = false;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) added_[i] = 0;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      // Lanes 0 to 15 give the addresses of matrix rows: one query column and eight keys each.
      const int key = first_key(block) + place_.warp * 16 + place_.lane / 8 % 2 * 8;
      const std::uint32_t box =
          shared_address(shared_.weights(buffer_)) + key / 64 * DecodeShared<kConfig>::kColumnBox;
#pragma unroll
      for (int j = 0; j < kScores / 4; ++j) {
        std::uint32_t pairs[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float weights[2];
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const float score = scores_[block][4 * j + 2 * half + e];
            exceeds_ = exceeds_ || score > limits_[2 * j + e];
            weights[e] = exp2_fast(fmaf(score, args_.scale_log2, -state_.references[2 * j + e]));
            added_[2 * j + e] += weights[e];
          }
          pairs[half] = pack<kConfig.element>(weights[0], weights[1]);
        }
        const int column = Columns::first_scored(place_) + 8 * j + place_.lane % 8;
        store_matrices_transposed(swizzled(box, column, key % 64 * 2), pairs[0], pairs[1]);
      }
    }
  }

  // Moves the references to the maxima of the columns and rescales what was summed so far.
  HP_DEVICE void move_references() {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      float most = decode_nothing();
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        const int at = i / 2 * 4 + i % 2;
        most = fmaxf(most, fmaxf(scores_[block][at], scores_[block][at + 2]));
      }
      most = max_of_rows(most);
      if (place_.lane < 4) sync_.columns[place_.thread / 32][scored_column(i)] = most;
    }
    sync_threads(kMove, kDecodeConsumers);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int column = scored_column(i);
      const float factor = move_reference(i, column);
      if constexpr (kSplitColumns) {
        if (place_.warp == 0 && place_.lane < 4) sync_.handed[column] = factor;
      } else {
        rescale(i, factor);
      }
    }
    if constexpr (kSplitColumns) {
      sync_threads(kMove, kDecodeConsumers);
#pragma unroll
      for (int i = 0; i < kConfig.columns / 4; ++i) rescale(i, sync_.handed[place_.column(i)]);
    }
  }

  // Moves the reference of the i-th column that the thread scores. The result is the factor of what
  // was summed so far.
  HP_DEVICE float move_reference(int i, int column) {
    float most = limits_[i] - args_.slack;
#pragma unroll
    for (int warp = 0; warp < Columns::kWarps; ++warp) {
      most = fmaxf(most, sync_.columns[Columns::first_warp(column) + warp][column]);
    }
    const bool any = most > decode_nothing();
    const float reference = any ? most * args_.scale_log2 : 0.0F;
    const bool begun = limits_[i] > decode_nothing();
    const float factor = begun ? exp2_fast(state_.references[i] - reference) : 0.0F;
    state_.references[i] = reference;
    state_.weights[i] *= factor;
    limits_[i] = most + args_.slack;
    return factor;
  }

  // Multiplies the sums of the thread's i-th column.
  HP_DEVICE void rescale(int i, float factor) {
#pragma unroll
    for (int block = 0; block < kValueBlocks; ++block) {
      state_.sums[block][i / 2 * 4 + i % 2] *= factor;
      state_.sums[block][i / 2 * 4 + i % 2 + 2] *= factor;
    }
  }

  HP_DEVICE void multiply_values(int slot) {
    const std::uint8_t* own = shared_.slot(slot);
    const std::uint8_t* weights = shared_.weights(buffer_);
    if constexpr (kSplitKeys) {
      own += place_.warpgroup * kBlocks * 64 * 128;
      weights += place_.warpgroup * kBlocks * DecodeShared<kConfig>::kColumnBox;
    } else {
      own += place_.warpgroup * kValueBlocks * DecodeShared<kConfig>::kBox;
    }
    const std::uint64_t from = uniform(n_major(own, DecodeShared<kConfig>::kBox));
    const std::uint64_t by = uniform(k_major(weights));
    pin_sums();
    begin_wgmmas();
#pragma unroll
    for (int block = 0; block < kValueBlocks; ++block) {
#pragma unroll
      for (int k = 0; k < (kSplitKeys ? kBlocks * 64 : kTile) / 16; ++k) {
        Wgmma<kConfig.columns, kConfig.element, false>::multiply_transposed(
            state_.sums[block], from + k * kNMajorStep + block * (DecodeShared<kConfig>::kBox >> 4),
            by + k % 4 * kKMajorStep + k / 4 * (DecodeShared<kConfig>::kColumnBox >> 4), true);
      }
    }
    commit_wgmmas();
    wait_wgmmas<0>();
    pin_sums();
  }

  HP_DEVICE void pin_sums() {
#pragma unroll
    for (int block = 0; block < kValueBlocks; ++block) pin(state_.sums[block]);
  }

  // The warp has read the barrier's slot; __syncwarp orders all lanes' reads before the arrival.
  HP_DEVICE void release(Barrier* emptied) const {
    __syncwarp();
    if (place_.lane == 0) arrive(emptied);
  }

  const DecodeArgs& args_;
  DecodeShared<kConfig> shared_;
  DecodeSync& sync_;
  DecodePlace place_;
  int buffer_ = 0;
  bool exceeds_ = false;
  Ring<pieces_ahead(kConfig)> pieces_;
  Ring<kConfig.slots> ring_;
  State state_;
  float limits_[kOwn];  // a score above it moves the reference
  float added_[kOwn];   // weights of the tile
  float scores_[kBlocks][kScores];
};

}  // namespace harpe::device
