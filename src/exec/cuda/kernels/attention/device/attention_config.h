#pragma once

#include "exec/cuda/device/copy_args.h"

// The compile-time configuration of an attention kernel.
namespace harpe::device {

inline constexpr int kWarpgroup = 128;
inline constexpr int kRowsOfWarpgroup = 64;  // query rows of a consumer warpgroup
inline constexpr int kBoxColumns = 64;       // 16-bit values in a row of a swizzled box

struct AttentionConfig {
  Element element = Element::BF16;
  Element output = Element::BF16;  // F32: a state that a later kernel carries on
  int query_dim = 128;             // of queries and keys
  int value_dim = 128;
  int kv_tile = 128;
  int kv_stages = 2;
  int query_stages = 2;
  int consumers = 2;     // warpgroups of 64 query rows each
  bool carried = false;  // starts from a given (output, lse)
  int producer_registers = 40;
  int consumer_registers = 232;

  friend HP_SHARED_CODE bool operator==(const AttentionConfig&, const AttentionConfig&) = default;
};

HP_SHARED_CODE int threads_of(const AttentionConfig& config) {
  return (config.consumers + 1) * kWarpgroup;
}
HP_SHARED_CODE int query_rows(const AttentionConfig& config) {
  return config.consumers * kRowsOfWarpgroup;
}
HP_SHARED_CODE int query_bytes(const AttentionConfig& config) {
  return query_rows(config) * config.query_dim * 2;
}
HP_SHARED_CODE int key_bytes(const AttentionConfig& config) {
  return config.kv_tile * config.query_dim * 2;
}
HP_SHARED_CODE int value_bytes(const AttentionConfig& config) {
  return config.kv_tile * config.value_dim * 2;
}

// Shared memory for barriers and tile descriptions (AttentionSync).
inline constexpr int kAttentionSyncBytes = 1024;

HP_SHARED_CODE int tile_bytes(const AttentionConfig& config) {
  return config.query_stages * query_bytes(config) +
         config.kv_stages * (key_bytes(config) + value_bytes(config));
}
// Shared memory of a copying thread block for its granules, in place of tiles (copy.cuh).
inline constexpr int kAttentionCopyBytes = 6 * static_cast<int>(kCopyGranule);

HP_SHARED_CODE int shared_bytes(const AttentionConfig& config) {
  const int tiles = tile_bytes(config);
  return (tiles > kAttentionCopyBytes ? tiles : kAttentionCopyBytes) + kAttentionSyncBytes;
}

HP_SHARED_CODE bool valid(const AttentionConfig& config) {
  const int registers = config.producer_registers + config.consumers * config.consumer_registers;
  const bool shapes = config.query_dim % kBoxColumns == 0 && config.value_dim % kBoxColumns == 0 &&
                      config.kv_tile % 16 == 0 && config.kv_tile <= 256;
  const bool rings = config.kv_stages >= 1 && config.kv_stages <= 4 && config.query_stages >= 1 &&
                     config.query_stages <= 2 && config.consumers >= 2 && config.consumers <= 3;
  return shapes && rings && shared_bytes(config) <= kSharedMemoryLimit &&
         registers * kWarpgroup <= 64 * 1024 && config.element != Element::F32 &&
         config.producer_registers % 8 == 0 && config.consumer_registers % 8 == 0 &&
         (config.output == config.element || config.output == Element::F32);
}

}  // namespace harpe::device
