#pragma once

#include "exec/cuda/device/types.h"

// Division by a number that the host knows in advance: two instructions instead of thirty. A block
// divides several times before its first load.
namespace harpe::device {

struct Divisor {
  std::int32_t number;
  std::uint32_t factor;
  std::uint32_t shift;
};

// Exact for dividends from 0 to 2^31 - 1. Requires: number > 0.
HP_SHARED_CODE Divisor divisor(int number) {
  const auto by = static_cast<std::uint64_t>(number);
  std::uint32_t shift = 0;
  while ((std::uint64_t{1} << shift) < by) ++shift;
  const std::uint64_t rest = (std::uint64_t{1} << shift) - by;
  return {.number = number,
          .factor = static_cast<std::uint32_t>((rest << 32) / by + 1),
          .shift = shift};
}

HP_SHARED_CODE int operator/(int value, const Divisor& by) {
  const auto bits = static_cast<std::uint32_t>(value);
  const auto high = static_cast<std::uint32_t>(std::uint64_t{bits} * by.factor >> 32);
  return static_cast<int>((high + bits) >> by.shift);
}

HP_SHARED_CODE int operator%(int value, const Divisor& by) {
  return value - value / by * by.number;
}

}  // namespace harpe::device
