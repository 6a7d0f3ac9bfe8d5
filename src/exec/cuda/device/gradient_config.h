#pragma once

#include "exec/cuda/device/attention_config.h"
#include "exec/cuda/device/gradient_walk.h"

// What is fixed when a kernel of attention's gradients is compiled. A block makes the gradients of
// kKeyTile keys from all queries that it meets, kQueryTile at a time. Heads of queries, keys and
// values are of one size.
namespace harpe::device {

inline constexpr int kGradientConsumers = 2;                 // warpgroups of 64 keys each
inline constexpr int kGradientBox = kRowsOfWarpgroup * 128;  // bytes
static_assert(kKeyTile == kGradientConsumers * kRowsOfWarpgroup && kQueryTile == kRowsOfWarpgroup);

struct GradientConfig {
  Element element = Element::BF16;
  int head_dim = 128;
  unsigned query_stages = 2;  // tiles of q and do
  int producer_registers = 24;
  int consumer_registers = 240;

  friend HP_SHARED_CODE bool operator==(const GradientConfig&, const GradientConfig&) = default;
};

inline constexpr int kGradientThreads = (kGradientConsumers + 1) * kWarpgroup;

// k and v of a block.
HP_SHARED_CODE int key_bytes(const GradientConfig& config) {
  return 2 * kKeyTile * config.head_dim * 2;
}
// q and do of a step.
HP_SHARED_CODE int query_bytes(const GradientConfig& config) {
  return 2 * kQueryTile * config.head_dim * 2;
}
// What a step adds to dq, in f32.
HP_SHARED_CODE int sum_bytes(const GradientConfig& config) {
  return kQueryTile * config.head_dim * 4;
}
// Gradients of the scores of a step, keys by queries; those of two steps are there.
inline constexpr unsigned kScoreStages = 2;
inline constexpr int kScoreBytes = kKeyTile * kQueryTile * 2;

inline constexpr unsigned kSumStages = 2;  // tiles of dq on their way
inline constexpr unsigned kMaxGradientStages = 4;

// Room for barriers and numbers of queries (GradientSync).
inline constexpr int kGradientSyncBytes = 3 * 1024;

HP_SHARED_CODE int shared_bytes(const GradientConfig& config) {
  return key_bytes(config) + static_cast<int>(config.query_stages) * query_bytes(config) +
         static_cast<int>(kScoreStages) * kScoreBytes +
         static_cast<int>(kSumStages) * sum_bytes(config) + kGradientSyncBytes;
}

// What the threads of a block start with, and deal out anew.
inline constexpr int kGradientStartRegisters = 64 * 1024 / kGradientThreads / 8 * 8;

HP_SHARED_CODE bool valid(const GradientConfig& config) {
  const int registers = config.producer_registers + kGradientConsumers * config.consumer_registers;
  const bool stages = config.query_stages >= 2 && config.query_stages <= kMaxGradientStages;
  return (config.head_dim == 64 || config.head_dim == 128) && config.element != Element::F32 &&
         stages && registers * kWarpgroup <= kGradientStartRegisters * kGradientThreads &&
         config.producer_registers % 8 == 0 && config.consumer_registers % 8 == 0 &&
         shared_bytes(config) <= kSharedMemoryLimit;
}

}  // namespace harpe::device
