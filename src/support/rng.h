#pragma once

#include <cstdint>

namespace harpe {

// A bijection of 64-bit words that leaves no pattern of its argument (splitmix64's finaliser).
// Element i of a reproducible stream is mix_bits(key + (i + 1) * kStreamStep), whatever was drawn
// before.
constexpr std::uint64_t kStreamStep = 0x9e3779b97f4a7c15ULL;

[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace harpe
