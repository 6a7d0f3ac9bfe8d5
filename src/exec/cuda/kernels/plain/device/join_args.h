#pragma once

#include "exec/cuda/device/loop_nest.h"

// The arguments of the kernel that joins parts of the keys, for host and device.
namespace harpe::device {

inline constexpr int kMostParts = 64;  // of the keys of one chunk

// The last step of flash decoding: joins the states of `parts` parts of the keys, dense f32 [batch,
// part, head, row, column] and [batch, part, head, row]. Strides in elements.
struct JoinArgs {
  const float* o;
  const float* l;  // natural logarithms
  void* to;
  float* lse;  // null: not stored
  AttentionStrides to_strides;
  AttentionStrides lse_strides;
  Number to_number;
  std::int32_t parts;
  std::int32_t heads;
  std::int32_t rows;
  std::int32_t columns;
  std::int64_t all_rows;  // of all heads and batch entries
};

}  // namespace harpe::device
