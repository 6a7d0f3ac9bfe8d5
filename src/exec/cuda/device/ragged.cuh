#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/device/used_rows.h"

// Numbers of rows that are known only at run time. Launches are made for the capacity.
namespace harpe::device {

// How many of `capacity` rows are used. An earlier kernel, perhaps of a peer, wrote the number.
HP_DEVICE std::int64_t used_of(const UsedRows& used, std::int64_t capacity) {
  if (used.rows == nullptr) return capacity;
  const std::int64_t count = *static_cast<const volatile std::int32_t*>(used.rows) - used.before;
  return count < 0 ? 0 : (count > capacity ? capacity : count);
}

// Copies the operand's number of rows to the result. Other threads may write the same number.
HP_DEVICE void take_over(const UsedRows& used) {
  if (used.rows == nullptr || used.result == nullptr) return;
  *static_cast<volatile std::int32_t*>(used.result) =
      *static_cast<const volatile std::int32_t*>(used.rows);
}

// The same, by one thread of the grid.
HP_DEVICE void note_used(const UsedRows& used) {
  if (thread_of_grid() == 0) take_over(used);
}

}  // namespace harpe::device
