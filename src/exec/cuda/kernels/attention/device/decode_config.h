#pragma once

#include "exec/cuda/device/types.h"

// The compile-time configuration of the kernel for few queries over long keys (decode.cuh).
namespace harpe::device {

struct DecodeConfig {
  Element element = Element::BF16;
  Element output = Element::BF16;  // F32: a state that a later kernel carries on
  int head_dim = 128;              // of queries and keys: 64, 128 or 576
  int value_dim = 128;             // head_dim, or 512 with 576: keys then hold their values
  int columns = 8;                 // the most queries of a head group: 8 or 16, or 32 with 576
  int slots = 6;                   // ring slots; each holds a tile of keys or of values, or of both
  bool exchanges = false;          // heads are stored at several places, and may have addends

  friend HP_SHARED_CODE bool operator==(const DecodeConfig&, const DecodeConfig&) = default;
};

inline constexpr int kDecodeConsumers = 256;                  // consumer threads
inline constexpr int kDecodeThreads = kDecodeConsumers + 32;  // and a producer warp
inline constexpr int kDecodeSyncBytes = 3 * 1024;             // DecodeSync
inline constexpr int kDecodeExchangeBytes = 2560;             // DecodeExchange

// Whether the first value_dim elements of a key are its value, as in latent attention. A tile then
// has one ring slot, and each warpgroup computes the scores of half of the columns.
HP_SHARED_CODE bool values_in_keys(const DecodeConfig& config) {
  return config.value_dim < config.head_dim;
}

// Whether each warpgroup multiplies all elements of the values of its half of the keys, and not its
// half of the elements over all keys.
HP_SHARED_CODE bool splits_keys(const DecodeConfig& config) { return config.value_dim == 64; }

// Keys of a tile. Unless they hold the values, each warpgroup computes the scores of half of them.
HP_SHARED_CODE int tile_keys(const DecodeConfig& config) {
  if (values_in_keys(config)) return 64;
  return config.head_dim == 64 ? 256 : 128;
}
HP_SHARED_CODE int slots_per_tile(const DecodeConfig& config) {
  return values_in_keys(config) ? 1 : 2;
}
// Columns and blocks of 64 keys whose scores a warpgroup computes.
HP_SHARED_CODE int scored_columns(const DecodeConfig& config) {
  return values_in_keys(config) ? config.columns / 2 : config.columns;
}
HP_SHARED_CODE int scored_blocks(const DecodeConfig& config) {
  return values_in_keys(config) ? 1 : tile_keys(config) / 128;
}
// Blocks of 64 elements of the values that a warpgroup sums up.
HP_SHARED_CODE int value_blocks(const DecodeConfig& config) {
  return config.value_dim / (splits_keys(config) ? 64 : 128);
}
// Parts of pairs that the producer describes ahead of the consumers. Just one if the sums of a pair
// are parked in the buffer of queries, which is free again when all consumers have ended the part.
HP_SHARED_CODE int pieces_ahead(const DecodeConfig& config) {
  return values_in_keys(config) ? 1 : 2;
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
// Whether a pair's sums, at its end, are moved to the buffers of queries and weights, because
// registers do not hold them beside the states to join. Requires pieces_ahead() = 1.
HP_SHARED_CODE bool parks_sums(const DecodeConfig& config) { return value_blocks(config) > 1; }

// Queries and weights, or the sums of all consumers.
HP_SHARED_CODE int buffer_bytes(const DecodeConfig& config) {
  const int buffers = query_bytes(config) + 2 * weight_bytes(config);
  const int sums = parks_sums(config) ? config.columns * config.value_dim * 4 : 0;
  return buffers > sums ? buffers : sums;
}
HP_SHARED_CODE int shared_bytes(const DecodeConfig& config) {
  return config.slots * slot_bytes(config) + buffer_bytes(config) + kDecodeSyncBytes +
         (config.exchanges ? kDecodeExchangeBytes : 0);
}

// Consumer threads that hold sums at the end of a pair.
HP_SHARED_CODE int state_threads(const DecodeConfig& config) {
  return splits_keys(config) ? kDecodeConsumers / 2 : kDecodeConsumers;
}
// A partial state in memory, in floats: each thread's sums of values, four at a time
// (DecodeConsumer), then a reference and a sum of weights for each column.
HP_SHARED_CODE int state_floats(const DecodeConfig& config) {
  return config.columns * config.value_dim + 2 * config.columns;
}

// What a pair keeps while it awaits addends: four floats for each thread and each of the thread's
// columns in each block of values.
HP_SHARED_CODE int kept_floats(const DecodeConfig& config) {
  return state_threads(config) * value_blocks(config) * (config.columns / 4) * 4;
}

// Whether the query heads of a key head may be cut into several head groups.
HP_SHARED_CODE bool cuts_heads(const DecodeConfig& config) { return config.columns > 8; }

HP_SHARED_CODE bool valid(const DecodeConfig& config) {
  const bool latent = config.head_dim == 576 && config.value_dim == 512 && config.columns == 32;
  const bool alike = (config.head_dim == 64 || config.head_dim == 128) &&
                     config.value_dim == config.head_dim &&
                     (config.columns == 8 || config.columns == 16);
  return (latent || alike) && config.slots >= 2 && config.slots <= 6 &&
         shared_bytes(config) <= kSharedMemoryLimit && config.element != Element::F32 &&
         (config.output == config.element || config.output == Element::F32);
}

// Requires: the configuration is valid with fewer slots, if not with its own.
HP_SHARED_CODE DecodeConfig with_most_slots(DecodeConfig config) {
  while (!valid(config)) --config.slots;
  return config;
}

}  // namespace harpe::device
