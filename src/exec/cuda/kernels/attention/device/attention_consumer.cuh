#pragma once

#include "exec/cuda/kernels/attention/device/attention_store.cuh"

// A consumer warpgroup: 64 query rows of each tile. Its wgmmas overlap its softmax: it issues the
// scores of key tile j + 1 and the sums over tile j together, and the softmax of j + 1 waits only
// for its scores. The pipeline continues from one query tile to the next.
namespace harpe::device {

template <AttentionConfig kConfig>
class AttentionConsumer {
 public:
  HP_DEVICE AttentionConsumer(const AttentionArgs& args, AttentionShared<kConfig> shared,
                              int warpgroup)
      : args_(args),
        shared_(shared),
        sync_(shared.sync()),
        warpgroup_(warpgroup),
        thread_(static_cast<int>(threadIdx.x) % kWarpgroup) {}

  HP_DEVICE void run() {
    start_turns();
    wait_queries();
    start_tile();
    take_turn();
    issue_scores();
    pass_turn();
    take_scores<0>();
    rescale_carried();
    pack_weights();
    for (;;) {
      while ((flags_ & KvStep::kLast) == 0) step();
      if ((flags_ & KvStep::kFinal) != 0) break;
      change_tile();
    }
    take_turn();
    issue_sums();
    pass_turn();
    take_sums<0>();
    end_tile();
    end_turns();
  }

 private:
  static constexpr int kScores = kConfig.kv_tile / 2;
  static constexpr int kOutputs = kConfig.value_dim / 2;
  static constexpr int kFirstTurn = 1;     // named barriers, one for each warpgroup
  static constexpr int kFirstPublish = 4;  // likewise

  // Warpgroups issue wgmmas in turn: each waits until the preceding one has issued its own.
  HP_DEVICE void start_turns() {
    if (warpgroup_ == kConfig.consumers - 1) pass_turn();
  }
  HP_DEVICE void take_turn() { sync_threads(kFirstTurn + warpgroup_, 2 * kWarpgroup); }
  HP_DEVICE void pass_turn() {
    const int next = warpgroup_ + 1 == kConfig.consumers ? 0 : warpgroup_ + 1;
    arrive_threads(kFirstTurn + next, 2 * kWarpgroup);
  }
  HP_DEVICE void end_turns() {
    if (warpgroup_ == 0) take_turn();
  }

  HP_DEVICE void wait_queries() { wait_barrier(&sync_.query_full[queries_.slot], queries_.parity); }

  HP_DEVICE void start_tile() {
    ++tile_;
    const QueryTile tile = sync_.tiles[tile_ % kQueryTiles];
    position_ = args_.panels[tile.panel].position + tile.row + first_row();
    if constexpr (kConfig.carried) {
      load_carried<kConfig>(args_, tile, tile.row + first_row(), output_, rows_);
    } else {
      rows_ = SoftmaxRows::empty();
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) output_[i] = 0;
    }
  }

  HP_DEVICE int first_row() const {
    return warpgroup_ * kRowsOfWarpgroup + thread_ / 32 * 16 + thread_ % 32 / 4;
  }

  // The next key tile of the same query tile.
  HP_DEVICE void step() {
    take_turn();
    issue_scores();
    issue_sums();
    pass_turn();
    take_scores<1>();
    take_sums<0>();
    rescale();
    pack_weights();
  }

  // From the last key tile of a query tile to the first of the next: stores the results while the
  // tensor cores compute the next scores.
  HP_DEVICE void change_tile() {
    take_turn();
    issue_sums();
    wait_queries();
    issue_scores();
    pass_turn();
    take_sums<1>();
    end_tile();
    start_tile();
    take_scores<0>();
    rescale_carried();
    pack_weights();
  }

  HP_DEVICE void issue_scores() {
    wait_barrier(&sync_.key_full[keys_.slot], keys_.parity);
    std::uint64_t queries = k_major(shared_.queries(queries_.slot, warpgroup_));
    std::uint64_t keys = k_major(shared_.keys(keys_.slot));
    pin(scores_);
    begin_wgmmas();
#pragma unroll
    for (int k = 0; k < kConfig.query_dim / 16; ++k) {
      constexpr int kSteps = kBoxColumns / 16;
      const std::uint64_t inside = k % kSteps * kKMajorStep;
      Wgmma<kConfig.kv_tile, kConfig.element, false>::multiply(
          scores_, queries + inside + k / kSteps * (shared_.kQueryBox >> 4),
          keys + inside + k / kSteps * (shared_.kKvBox >> 4), k > 0);
    }
    commit_wgmmas();
  }

  HP_DEVICE void issue_sums() {
    wait_barrier(&sync_.value_full[values_.slot], values_.parity);
    const std::uint64_t values = n_major(shared_.values(values_.slot), shared_.kKvBox);
    pin(output_);
    begin_wgmmas();
#pragma unroll
    for (int k = 0; k < kConfig.kv_tile / 16; ++k) {
      Wgmma<kConfig.value_dim, kConfig.element, true>::multiply(output_, weights_[k],
                                                                values + k * kNMajorStep, true);
    }
    commit_wgmmas();
  }

  // Waits for the scores of the current key tile and turns them into weights.
  template <int kPending>
  HP_DEVICE void take_scores() {
    wait_wgmmas<kPending>();
    pin(scores_);
    const KvStep keys = sync_.steps[keys_.slot];
    flags_ = keys.flags;
    release(&sync_.key_empty[keys_.slot], true);
    release(&sync_.query_empty[queries_.slot], (flags_ & KvStep::kLast) != 0);
    keys_.advance();
    if ((flags_ & KvStep::kLast) != 0) queries_.advance();
    if ((flags_ & KvStep::kMasked) != 0) mask(keys);
    float maxima[2];
    row_maxima(scores_, maxima);
    moved_ = __any_sync(0xFFFFFFFF, maxima[0] > rows_.limit[0] || maxima[1] > rows_.limit[1]);
    if (moved_) move_references(rows_, maxima, args_.scale_log2, args_.slack, factors_);
    exponentiate(scores_, rows_, args_.scale_log2);
    pin(scores_);
  }

  template <int kPending>
  HP_DEVICE void take_sums() {
    wait_wgmmas<kPending>();
    pin(output_);
    release(&sync_.value_empty[values_.slot], true);
    values_.advance();
  }

  HP_DEVICE void rescale() {
    if (!moved_) return;
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) output_[i] *= factors_[i / 2 % 2];
  }

  // At the first key tile only a carried state has outputs to rescale.
  HP_DEVICE void rescale_carried() {
    if constexpr (kConfig.carried) rescale();
  }

  HP_DEVICE void pack_weights() {
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      weights_[i / 8][i / 2 % 4] = pack<kConfig.element>(scores_[i], scores_[i + 1]);
    }
  }

  HP_DEVICE void mask(const KvStep& keys) {
    const int lane = thread_ % 4 * 2;
    VisibleColumns visible[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int distance = position_ + 8 * row - keys.position;
      visible[row].high =
          (args_.mask.bounded() ? smaller(keys.columns, distance + 1) : keys.columns) - lane;
      visible[row].low = distance - args_.mask.window + 1 - lane;
    }
    hide(scores_, visible, args_.mask.window > 0);
  }

  HP_DEVICE void end_tile() {
    if ((flags_ & KvStep::kPoisoned) != 0) return;
    const QueryTile tile = sync_.tiles[tile_ % kQueryTiles];
    const AttentionPanel& panel = args_.panels[tile.panel];
    store_results<kConfig>(panel, tile, tile.row + first_row(), output_, rows_);
    if (panel.done != nullptr) publish_stores(panel.done, kFirstPublish + warpgroup_);
  }

  // The warp has read the barrier's slot. One lane arrives; __syncwarp orders the other lanes'
  // reads before it.
  HP_DEVICE void release(Barrier* empty, bool really) const {
    __syncwarp();
    if (really && thread_ % 32 == 0) arrive(empty);
  }

  const AttentionArgs& args_;
  AttentionShared<kConfig> shared_;
  AttentionSync& sync_;
  int warpgroup_;
  int thread_;
  int tile_ = -1;
  int position_ = 0;  // logical position of the thread's first row
  int flags_ = 0;     // KvStep flags of the key tile whose weights are in `weights_`
  bool moved_ = false;
  Ring<kConfig.query_stages> queries_;
  Ring<kConfig.kv_stages> keys_;
  Ring<kConfig.kv_stages> values_;
  float factors_[2];
  SoftmaxRows rows_;
  float scores_[kScores];
  std::uint32_t weights_[kConfig.kv_tile / 16][4];
  float output_[kOutputs];
};

}  // namespace harpe::device
