#pragma once

#include "exec/cuda/device/gradient_config.h"
#include "exec/cuda/device/mbarrier.cuh"

// The shared memory of a block of attention's gradients.
namespace harpe::device {

struct GradientSync {
  static constexpr int kNumbers = kMaxGradientStages * column_tile(GradientSide::Keys);

  // Of the columns of a slot, where these are queries: -lse log2(e), -inf where the query does not
  // exist or sees nothing, and delta.
  float minus_lse[kNumbers];
  float delta[kNumbers];
  Barrier rows_full;
  Barrier column_full[kMaxGradientStages];
  Barrier column_empty[kMaxGradientStages];
};

static_assert(sizeof(GradientSync) <= kGradientSyncBytes);

// Rows first: [matrix][warpgroup][64 features][64 rows of 128 bytes]; then columns:
// [stage][matrix][64 features][column_tile rows of 128 bytes]. The first matrices make the scores:
// of keys k with q, of queries q with k; the second the products of v and do.
template <GradientConfig kConfig, GradientSide kSide>
class GradientShared {
 public:
  static constexpr int kColumns = column_tile(kSide);
  static constexpr int kStages = column_stages(kConfig, kSide);
  static constexpr int kRowBox = kGradientBox;
  static constexpr int kColumnBox = kColumns * 128;
  static_assert(kStages <= kMaxGradientStages);

  HP_DEVICE explicit GradientShared(std::uint8_t* base) : base_(base) {}

  HP_DEVICE std::uint8_t* rows(int matrix, int warpgroup) const {
    constexpr int kBytes = kRowsOfWarpgroup * kConfig.head_dim * 2;
    return base_ + (matrix * kGradientConsumers + warpgroup) * kBytes;
  }
  HP_DEVICE std::uint8_t* columns(int stage, int matrix) const {
    constexpr int kBytes = kColumns * kConfig.head_dim * 2;
    return base_ + row_bytes(kConfig) + (stage * 2 + matrix) * kBytes;
  }
  HP_DEVICE float* minus_lse(int stage) const { return sync().minus_lse + stage * kColumns; }
  HP_DEVICE float* delta(int stage) const { return sync().delta + stage * kColumns; }
  HP_DEVICE GradientSync& sync() const {
    return *reinterpret_cast<GradientSync*>(base_ + shared_bytes(kConfig) - kGradientSyncBytes);
  }

 private:
  std::uint8_t* base_;
};

// Who arrives when a slot is filled: the thread that loads, and where columns are queries the
// threads that bring their numbers.
HP_SHARED_CODE int arrivals_of(GradientSide side) {
  return side == GradientSide::Keys ? 1 + column_tile(side) : 1;
}

// By one warp. A slot is empty once every consuming warp said so.
HP_DEVICE void init_gradient_barriers(GradientSync& sync, GradientSide side) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) init_barrier(&sync.rows_full, 1);
  if (lane < kMaxGradientStages) {
    init_barrier(&sync.column_full[lane], static_cast<std::uint32_t>(arrivals_of(side)));
    init_barrier(&sync.column_empty[lane], kGradientConsumers * kWarpgroup / 32);
  }
  fence_barrier_init();
}

}  // namespace harpe::device
