#pragma once

#include "exec/cuda/device/gradient_producer.cuh"
#include "exec/cuda/device/gradient_store.cuh"
#include "exec/cuda/device/wgmma.cuh"

// A consuming warpgroup: 64 rows of one side. Scores and products have this side along the rows of
// their accumulators, so that weights and gradients of scores go on into the sums from registers.
// The scores of a tile are computed behind the sums of the one before. Registers decide the order:
// products begin only where the sums before are done and what these were weighted with is free.
namespace harpe::device {

template <GradientConfig kConfig, GradientSide kSide>
class GradientConsumer {
 public:
  HP_DEVICE GradientConsumer(const GradientArgs& args, GradientShared<kConfig, kSide> shared,
                             const GradientWork& work, int warpgroup)
      : args_(args),
        side_(kOfKeys ? args.keys : args.queries),
        shared_(shared),
        sync_(shared.sync()),
        work_(work),
        warpgroup_(warpgroup),
        thread_(static_cast<int>(threadIdx.x) % kWarpgroup),
        row_(work.tile.row + warpgroup * kRowsOfWarpgroup),
        column_(work.column) {}

  HP_DEVICE void run() {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      sums_[i] = 0;
      if constexpr (kOfKeys) value_sums_[i] = 0;
    }
    if constexpr (!kOfKeys) take_numbers();
    if (work_.steps > 0) go_over_columns();
    if constexpr (kOfKeys) {
      if (work_.parts > 1) gather_parts();
    }
    if (work_.part == 0) store();
  }

 private:
  using Shared = GradientShared<kConfig, kSide>;
  static constexpr bool kOfKeys = kSide == GradientSide::Keys;
  static constexpr int kColumns = Shared::kColumns;
  static constexpr int kScores = kColumns / 2;
  static constexpr int kSums = kConfig.head_dim / 2;
  static constexpr int kGather = 1;  // named barrier
  static_assert(!kOfKeys || row_bytes(kConfig) * 2 <= kGradientRing, "sums of a block fit there");
  using Fragments = std::uint32_t[kColumns / 16][4];

  [[nodiscard]] HP_DEVICE int row_of_thread() const {
    return row_ + thread_ / 32 * 16 + thread_ % 32 / 4;
  }

  // Of the thread's queries.
  HP_DEVICE void take_numbers() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = row_of_thread() + 8 * half;
      minus_lse_[half] = minus_infinity();
      delta_[half] = 0;
      if (query >= side_.rows) continue;
      const GradientTile& tile = work_.tile;
      minus_lse_[half] = minus_log2(number_at(args_.lse, tile.batch, tile.head, query));
      delta_[half] = number_at(args_.delta, tile.batch, tile.head, query);
    }
  }

  HP_DEVICE void go_over_columns() {
    wait_barrier(&sync_.rows_full, 0);
    int before = 0;  // the slot of the tile before
#pragma unroll 1
    for (int left = work_.steps; left > 0; --left) {
      wait_barrier(&sync_.column_full[slots_.slot], slots_.parity);
      multiply_columns(0, scores_);
      end_sums<1>();
      if (left < work_.steps) release(before);
      multiply_columns(1, products_);
      take_scores();
      if constexpr (kOfKeys) {
        pack_scores(weights_);
        add_columns(weights_, 1, value_sums_);
      }
      take_products();
      add_columns(gradients_, 0, sums_);
      before = slots_.slot;
      slots_.advance();
    }
    end_sums<0>();
  }

  // Groups of products after the sums of the tile before: kPending.
  template <int kPending>
  HP_DEVICE void end_sums() {
    wait_products<kPending>();
    pin(sums_);
    if constexpr (kOfKeys) pin(value_sums_);
  }

  // The warpgroup's rows times the columns, of the first or the second matrices: one group.
  HP_DEVICE void multiply_columns(int matrix, float (&results)[kScores]) {
    const std::uint64_t rows = k_major(shared_.rows(matrix, warpgroup_));
    const std::uint64_t columns = k_major(shared_.columns(slots_.slot, matrix));
    pin(results);
    begin_products();
#pragma unroll
    for (int k = 0; k < kConfig.head_dim / 16; ++k) {
      constexpr int kSteps = kBoxColumns / 16;
      const std::uint64_t inside = k % kSteps * kKMajorStep;
      Wgmma<kColumns, kConfig.element, false>::multiply(
          results, rows + inside + k / kSteps * (Shared::kRowBox >> 4),
          columns + inside + k / kSteps * (Shared::kColumnBox >> 4), k > 0);
    }
    commit_products();
  }

  // Scores become weights.
  HP_DEVICE void take_scores() {
    wait_products<1>();
    pin(scores_);
    if (is_cut(side_, row_, kRowsOfWarpgroup, column_, kColumns)) cut();
    column_ += kColumns;
    if (column_ >= work_.columns.end) column_ = work_.columns.begin;
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      const float2 minus_lse = numbers(shared_.minus_lse(slots_.slot), minus_lse_, i);
      scores_[i] = exp2_fast(fmaf(scores_[i], args_.scale_log2, minus_lse.x));
      scores_[i + 1] = exp2_fast(fmaf(scores_[i + 1], args_.scale_log2, minus_lse.y));
    }
  }

  HP_DEVICE void cut() {
    const int lane = thread_ % 4 * 2;
    VisibleColumns visible[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_of_thread() + 8 * half;
      visible[half].low = row + side_.band.low - column_ - lane;
      visible[half].high = smaller(side_.columns, row + side_.band.high + 1) - column_ - lane;
    }
    hide(scores_, visible, true);
  }

  // Of values `i` and `i + 1` of an accumulator: of their columns, or of their row.
  HP_DEVICE float2 numbers(const float* of_columns, const float (&of_rows)[2], int i) const {
    if constexpr (kOfKeys) {
      return *reinterpret_cast<const float2*>(of_columns + i / 4 * 8 + thread_ % 4 * 2);
    } else {
      return {of_rows[i / 2 % 2], of_rows[i / 2 % 2]};
    }
  }

  // Weights and products become the gradients of scores.
  HP_DEVICE void take_products() {
    wait_products<kOfKeys ? 1 : 0>();
    pin(products_);
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      const float2 delta = numbers(shared_.delta(slots_.slot), delta_, i);
      scores_[i] *= products_[i] - delta.x;
      scores_[i + 1] *= products_[i + 1] - delta.y;
    }
    pack_scores(gradients_);
  }

  HP_DEVICE void pack_scores(Fragments& fragments) {
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      fragments[i / 8][i / 2 % 4] = pack<kConfig.element>(scores_[i], scores_[i + 1]);
    }
  }

  // The columns, weighted, onto the sums: one group.
  HP_DEVICE void add_columns(const Fragments& fragments, int matrix, float (&sums)[kSums]) {
    const std::uint64_t columns = n_major(shared_.columns(slots_.slot, matrix), Shared::kColumnBox);
    pin(sums);
    begin_products();
#pragma unroll
    for (int k = 0; k < kColumns / 16; ++k) {
      Wgmma<kConfig.head_dim, kConfig.element, true>::multiply(sums, fragments[k],
                                                               columns + k * kNMajorStep, true);
    }
    commit_products();
  }

  // The warp no longer reads the slot.
  HP_DEVICE void release(int slot) const {
    __syncwarp();
    if (thread_ % 32 == 0) arrive(&sync_.column_empty[slot]);
  }

  // The first block adds up what the others of its cluster have, in their order. Sums lie where
  // columns did.
  HP_DEVICE void gather_parts() {
    sync_threads(kGather, kGradientConsumers * kWarpgroup);  // nobody reads columns any more
    if (work_.part > 0) leave_sums();
    sync_cluster();
    if (work_.part == 0) {
#pragma unroll 1
      for (int part = 1; part < work_.parts; ++part) add_sums(part);
    }
    sync_cluster();  // a block stays until its sums are read
  }

  [[nodiscard]] HP_DEVICE float* place_of_sums() const {
    auto* const ring = reinterpret_cast<float*>(shared_.columns(0, 0));
    return ring + warpgroup_ * 2 * kSums * kWarpgroup + thread_;
  }

  HP_DEVICE void leave_sums() {
    float* const place = place_of_sums();
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      place[i * kWarpgroup] = sums_[i];
      place[(kSums + i) * kWarpgroup] = value_sums_[i];
    }
  }

  HP_DEVICE void add_sums(int part) {
    const std::uint32_t place = address_in_block(place_of_sums(), static_cast<std::uint32_t>(part));
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      constexpr std::uint32_t kBytes = kWarpgroup * sizeof(float);
      sums_[i] += load_from_block(place + i * kBytes);
      value_sums_[i] += load_from_block(place + (kSums + i) * kBytes);
    }
  }

  HP_DEVICE void store() const {
    const GradientSums& to = kOfKeys ? args_.dk : args_.dq;
    store_sums(to, work_.tile, row_of_thread(), side_.rows, args_.scale, sums_);
    if constexpr (kOfKeys) {
      store_sums(args_.dv, work_.tile, row_of_thread(), side_.rows, 1.0F, value_sums_);
    }
  }

  const GradientArgs& args_;
  const GradientRows& side_;
  Shared shared_;
  GradientSync& sync_;
  GradientWork work_;
  int warpgroup_;
  int thread_;
  int row_;     // the warpgroup's first
  int column_;  // of the tile in turn
  Ring<Shared::kStages> slots_;
  float minus_lse_[2];  // where rows are queries
  float delta_[2];
  float scores_[kScores];
  float products_[kScores];
  Fragments weights_;
  Fragments gradients_;
  float sums_[kSums];
  float value_sums_[kSums];  // where rows are keys
};

}  // namespace harpe::device
