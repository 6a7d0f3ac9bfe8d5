#pragma once

#include "exec/cuda/device/attention_config.h"

// What is fixed when a kernel of attention's gradients is compiled. A block makes the gradients of
// `kGradientRows` rows of one side, keys or queries, from all columns of the other side that it
// meets. Heads of queries, keys and values are of one size.
namespace harpe::device {

enum class GradientSide : std::uint8_t { Keys, Queries };

inline constexpr int kGradientConsumers = 2;  // warpgroups of 64 rows each
inline constexpr int kGradientRows = kGradientConsumers * kRowsOfWarpgroup;
inline constexpr int kGradientBoxRows = kRowsOfWarpgroup;
inline constexpr int kGradientBox = kGradientBoxRows * 128;  // bytes

struct GradientConfig {
  Element element = Element::BF16;
  int head_dim = 128;
  int producer_registers = 24;
  int consumer_registers = 240;

  friend HP_SHARED_CODE bool operator==(const GradientConfig&, const GradientConfig&) = default;
};

// Columns that are met at a time. Of keys two sums stay in registers, of queries one.
HP_SHARED_CODE int column_tile(GradientSide side) { return side == GradientSide::Keys ? 64 : 128; }

inline constexpr int kGradientThreads = (kGradientConsumers + 1) * kWarpgroup;

// Of the two matrices of a block's rows.
HP_SHARED_CODE int row_bytes(const GradientConfig& config) {
  return 2 * kGradientRows * config.head_dim * 2;
}
// Of the two matrices of a tile of columns.
HP_SHARED_CODE int column_bytes(const GradientConfig& config, GradientSide side) {
  return 2 * column_tile(side) * config.head_dim * 2;
}

inline constexpr int kGradientRing = 128 * 1024;  // bytes of columns
inline constexpr int kMaxGradientStages = 4;

HP_SHARED_CODE int column_stages(const GradientConfig& config, GradientSide side) {
  const int stages = kGradientRing / column_bytes(config, side);
  return stages < kMaxGradientStages ? stages : kMaxGradientStages;
}

// Room for barriers and numbers of columns (GradientSync).
inline constexpr int kGradientSyncBytes = 3 * 1024;

HP_SHARED_CODE int shared_bytes(const GradientConfig& config) {
  return row_bytes(config) + kGradientRing + kGradientSyncBytes;
}

// What the threads of a block start with, and deal out anew.
inline constexpr int kGradientStartRegisters = 64 * 1024 / kGradientThreads / 8 * 8;

HP_SHARED_CODE bool valid(const GradientConfig& config) {
  const int registers = config.producer_registers + kGradientConsumers * config.consumer_registers;
  return (config.head_dim == 64 || config.head_dim == 128) && config.element != Element::F32 &&
         registers * kWarpgroup <= kGradientStartRegisters * kGradientThreads &&
         config.producer_registers % 8 == 0 && config.consumer_registers % 8 == 0 &&
         shared_bytes(config) <= kSharedMemoryLimit;
}

}  // namespace harpe::device
