#pragma once

#include "exec/cuda/device/types.h"

// Loops around kernels, and numbers of every floating type. Host and device.
namespace harpe::device {

// How a floating number lies in memory.
enum class Number : std::uint8_t { F32, F16, BF16, F64 };

HP_SHARED_CODE int bytes_of(Number number) {
  if (number == Number::F64) return 8;
  return number == Number::F32 ? 4 : 2;
}

inline constexpr int kMaxLoops = 6;

// Loops around a kernel, the outermost first. The first `kept` make results of their own; the
// turns of the others contribute to the same results, one after the other.
template <int kOperands>
struct LoopNest {
  std::int32_t count;
  std::int32_t kept;
  std::int64_t lengths[kMaxLoops + 1];           // one more where a row is a loop too
  std::int64_t bytes[kMaxLoops + 1][kOperands];  // how far an operand moves per turn

  friend HP_SHARED_CODE bool operator==(const LoopNest&, const LoopNest&) = default;
};

}  // namespace harpe::device
