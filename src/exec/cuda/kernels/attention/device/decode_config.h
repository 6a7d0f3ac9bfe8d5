#pragma once

#include "exec/cuda/device/types.h"

// The compile-time configuration of the kernel for few queries over long keys (decode.cuh).
namespace harpe::device {

struct DecodeConfig {
  Element element = Element::BF16;
  Element output = Element::BF16;  // F32: a state that a later kernel carries on
  int head_dim = 128;              // of queries, keys and values: 64 or 128
  int columns = 8;                 // the most queries of a head group: 8 or 16
  int slots = 6;                   // ring slots; each holds a tile of keys or of values
  bool exchanges = false;          // heads are stored at several places, and may have addends

  friend HP_SHARED_CODE bool operator==(const DecodeConfig&, const DecodeConfig&) = default;
};

inline constexpr int kDecodeConsumers = 256;                  // consumer threads
inline constexpr int kDecodeThreads = kDecodeConsumers + 32;  // and a producer warp
inline constexpr int kDecodeSyncBytes = 3 * 1024;             // DecodeSync
inline constexpr int kDecodeExchangeBytes = 2560;             // DecodeExchange

// Keys of a tile; each warpgroup computes the scores of half of them.
HP_SHARED_CODE int tile_keys(const DecodeConfig& config) {
  return config.head_dim == 64 ? 256 : 128;
}
HP_SHARED_CODE int slot_bytes(const DecodeConfig& config) {
  return tile_keys(config) * config.head_dim * 2;
}
HP_SHARED_CODE int query_bytes(const DecodeConfig& config) {
  return config.columns * config.head_dim * 2;
}
HP_SHARED_CODE int weight_bytes(const DecodeConfig& config) {
  return config.columns * tile_keys(config) * 2;
}
HP_SHARED_CODE int shared_bytes(const DecodeConfig& config) {
  return config.slots * slot_bytes(config) + 2 * query_bytes(config) + 2 * weight_bytes(config) +
         kDecodeSyncBytes + (config.exchanges ? kDecodeExchangeBytes : 0);
}

// A partial state in memory, in floats: each thread's sums of values, four at a time
// (DecodeConsumer), then a reference and a sum of weights for each column.
HP_SHARED_CODE int state_threads(int head_dim) { return 2 * head_dim; }
HP_SHARED_CODE int state_floats(int head_dim, int columns) {
  return columns * head_dim + 2 * columns;
}

// What a pair keeps while it awaits addends: four floats for each thread and
// each of the thread's columns.
HP_SHARED_CODE int kept_floats(int head_dim, int columns) {
  return state_threads(head_dim) * (columns / 4) * 4;
}

// Whether the query heads of a key head may be cut into several head groups.
HP_SHARED_CODE bool cuts_heads(const DecodeConfig& config) { return config.columns > 8; }

HP_SHARED_CODE bool valid(const DecodeConfig& config) {
  const bool heads = config.head_dim == 64 || config.head_dim == 128;
  const bool columns = config.columns == 8 || config.columns == 16;
  return heads && columns && config.slots >= 2 && config.slots <= 6 &&
         shared_bytes(config) <= kSharedMemoryLimit && config.element != Element::F32 &&
         (config.output == config.element || config.output == Element::F32);
}

}  // namespace harpe::device
