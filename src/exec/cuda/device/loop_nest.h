#pragma once

#include "exec/cuda/device/types.h"

// Loops around kernels, and floating types. For host and device.
namespace harpe::device {

// The storage format of a floating number.
enum class Number : std::uint8_t { F32, F16, BF16, F64 };

HP_SHARED_CODE int bytes_of(Number number) {
  if (number == Number::F64) return 8;
  return number == Number::F32 ? 4 : 2;
}

inline constexpr int kMaxLoops = 6;

// Loops around a kernel, outermost first. The first `kept` loops produce separate results;
// iterations of the others contribute to the same results, in order.
template <int kOperands>
struct LoopNest {
  std::int32_t count;
  std::int32_t kept;
  std::int64_t lengths[kMaxLoops + 1];           // one more if a row is a loop too
  std::int64_t bytes[kMaxLoops + 1][kOperands];  // an operand's step per iteration

  friend HP_SHARED_CODE bool operator==(const LoopNest&, const LoopNest&) = default;
};

}  // namespace harpe::device
