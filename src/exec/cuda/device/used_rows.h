#pragma once

#include "exec/cuda/device/types.h"

namespace harpe::device {

// How many of the rows that a launch is made for are used (exec/actions/occupancy.h).
struct UsedRows {
  const std::int32_t* rows;  // of the block; null: all rows are used
  std::int32_t* result;      // receives the number; null: none does
  std::int64_t before;       // rows of the block before these
  std::int64_t capacity;

  friend HP_SHARED_CODE bool operator==(const UsedRows&, const UsedRows&) = default;
};

}  // namespace harpe::device
