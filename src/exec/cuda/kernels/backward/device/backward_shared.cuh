#pragma once

#include "exec/cuda/device/mbarrier.cuh"
#include "exec/cuda/kernels/backward/device/backward_config.h"

// The shared memory of a thread block of attention backward.
namespace harpe::device {

// The parity of the phase in which a step fills its stage, in a ring of kStages. For the step
// before the first (unsigned wrap) it is that of a phase that counts as complete.
template <unsigned kStages>
HP_DEVICE std::uint32_t phase_of(unsigned step) {
  return step / kStages & 1;
}

struct BackwardSync {
  static constexpr int kNumbers = kMaxBackwardStages * kQueryTile;

  // For the queries of a slot: -lse log2(e), or -inf if the query does not exist or sees nothing;
  // and delta.
  float minus_lse[kNumbers];
  float delta[kNumbers];
  int query[kMaxBackwardStages];  // the first query of a slot
  BackwardWork work;
  Barrier keys_full;
  Barrier queries_full[kMaxBackwardStages];
  Barrier queries_empty[kMaxBackwardStages];
  Barrier scores_full[kScoreStages];
  Barrier scores_empty[kScoreStages];
  Barrier sums_full[kSumStages];
  Barrier sums_empty[kSumStages];
};

static_assert(sizeof(BackwardSync) <= kBackwardSyncBytes);

// Boxes of 128-byte rows. Keys [k, v][warpgroup][64 features][64 rows]; queries
// [stage][q, do][64 features][64 rows]; gradients of scores [stage][128 keys of 64 queries]; sums
// [stage][32 features in f32][64 queries].
template <BackwardConfig kConfig>
class BackwardShared {
 public:
  HP_DEVICE explicit BackwardShared(std::uint8_t* base) : base_(base) {}

  HP_DEVICE std::uint8_t* keys(int matrix, int warpgroup) const {
    constexpr int kBytes = kRowsOfWarpgroup * kConfig.head_dim * 2;
    return base_ + (matrix * kBackwardConsumers + warpgroup) * kBytes;
  }
  HP_DEVICE std::uint8_t* queries(unsigned stage, int matrix) const {
    constexpr int kBytes = kQueryTile * kConfig.head_dim * 2;
    return base_ + key_bytes(kConfig) + (stage * 2 + matrix) * kBytes;
  }
  HP_DEVICE std::uint8_t* scores(unsigned stage) const {
    return base_ + key_bytes(kConfig) + kConfig.query_stages * query_bytes(kConfig) +
           stage * kScoreBytes;
  }
  HP_DEVICE std::uint8_t* sums(unsigned stage) const {
    return scores(kScoreStages) + stage * sum_bytes(kConfig);
  }
  HP_DEVICE float* minus_lse(unsigned stage) const { return sync().minus_lse + stage * kQueryTile; }
  HP_DEVICE float* delta(unsigned stage) const { return sync().delta + stage * kQueryTile; }
  HP_DEVICE BackwardSync& sync() const {
    return *reinterpret_cast<BackwardSync*>(base_ + shared_bytes(kConfig) - kBackwardSyncBytes);
  }

 private:
  std::uint8_t* base_;
};

// By one warp. At queries_full the loading thread and the 32 lanes of the warp that brings lse and
// delta arrive; at queries_empty, scores_full, scores_empty and sums_full every consumer warp; at
// sums_empty one thread of the adder warp.
HP_DEVICE void init_backward_barriers(BackwardSync& sync) {
  constexpr std::uint32_t kConsumingWarps = kBackwardConsumers * kWarpgroup / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) init_barrier(&sync.keys_full, 1);
  if (lane < kScoreStages) {
    init_barrier(&sync.scores_full[lane], kConsumingWarps);
    init_barrier(&sync.scores_empty[lane], kConsumingWarps);
  }
  if (lane < kSumStages) {
    init_barrier(&sync.sums_full[lane], kConsumingWarps);
    init_barrier(&sync.sums_empty[lane], 1);
  }
  if (lane < kMaxBackwardStages) {
    init_barrier(&sync.queries_full[lane], 1 + 32);
    init_barrier(&sync.queries_empty[lane], kConsumingWarps);
  }
  fence_barrier_init();
}

}  // namespace harpe::device
