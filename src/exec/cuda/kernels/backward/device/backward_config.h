#pragma once

#include "exec/cuda/kernels/attention/device/attention_config.h"
#include "exec/cuda/kernels/backward/device/backward_walk.h"

// The compile-time configuration of attention backward. A thread block computes dk and dv of
// kKeyTile keys from all queries that it meets, kQueryTile at a time. Heads of queries, keys and
// values have one size.
namespace harpe::device {

inline constexpr int kBackwardConsumers = 2;                 // warpgroups of 64 keys each
inline constexpr int kBackwardBox = kRowsOfWarpgroup * 128;  // bytes
static_assert(kKeyTile == kBackwardConsumers * kRowsOfWarpgroup && kQueryTile == kRowsOfWarpgroup);

struct BackwardConfig {
  Element element = Element::BF16;
  int head_dim = 128;
  unsigned query_stages = 2;  // tiles of q and do
  int producer_registers = 24;
  int consumer_registers = 240;

  friend HP_SHARED_CODE bool operator==(const BackwardConfig&, const BackwardConfig&) = default;
};

inline constexpr int kBackwardThreads = (kBackwardConsumers + 1) * kWarpgroup;

// k and v of a block.
HP_SHARED_CODE int key_bytes(const BackwardConfig& config) {
  return 2 * kKeyTile * config.head_dim * 2;
}
// q and do of a step.
HP_SHARED_CODE int query_bytes(const BackwardConfig& config) {
  return 2 * kQueryTile * config.head_dim * 2;
}
// The addends of a step to dq, in f32.
HP_SHARED_CODE int sum_bytes(const BackwardConfig& config) {
  return kQueryTile * config.head_dim * 4;
}
// Gradients of the scores of a step, keys by queries; two steps are buffered.
inline constexpr unsigned kScoreStages = 2;
inline constexpr int kScoreBytes = kKeyTile * kQueryTile * 2;

inline constexpr unsigned kSumStages = 2;  // buffered addends to dq
inline constexpr unsigned kMaxBackwardStages = 4;

// Shared memory for barriers and the queries' lse and delta (BackwardSync).
inline constexpr int kBackwardSyncBytes = 3 * 1024;

HP_SHARED_CODE int shared_bytes(const BackwardConfig& config) {
  return key_bytes(config) + static_cast<int>(config.query_stages) * query_bytes(config) +
         static_cast<int>(kScoreStages) * kScoreBytes +
         static_cast<int>(kSumStages) * sum_bytes(config) + kBackwardSyncBytes;
}

// Registers per thread at launch, which the warpgroups redistribute (setmaxnreg).
inline constexpr int kBackwardStartRegisters = 64 * 1024 / kBackwardThreads / 8 * 8;

HP_SHARED_CODE bool valid(const BackwardConfig& config) {
  const int registers = config.producer_registers + kBackwardConsumers * config.consumer_registers;
  const bool stages = config.query_stages >= 2 && config.query_stages <= kMaxBackwardStages;
  return (config.head_dim == 64 || config.head_dim == 128) && config.element != Element::F32 &&
         stages && registers * kWarpgroup <= kBackwardStartRegisters * kBackwardThreads &&
         config.producer_registers % 8 == 0 && config.consumer_registers % 8 == 0 &&
         shared_bytes(config) <= kSharedMemoryLimit;
}

}  // namespace harpe::device
