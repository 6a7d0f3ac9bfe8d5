#pragma once

// Positions of a descriptor's fields, and how its slot in a ring is published. Proxies and the
// kernels that write descriptors share this header. Also compiled by NVRTC, for which
// exec/cuda/device/types.h defines the integer types.
#ifndef __CUDACC_RTC__
#include <cstdint>
#endif

namespace harpe::transport {

inline constexpr int kDescriptorWords = 8;
inline constexpr int kDescriptorVersion = 1;

// Word 0, from its lowest bit: phase 1, operation 7, version 8, mode 1, strength 1, follows 2,
// zero 12, value 32.
inline constexpr std::uint64_t kPhaseBit = 1;
inline constexpr int kOperationAt = 1;
inline constexpr int kOperationBits = 7;
inline constexpr int kVersionAt = 8;
inline constexpr int kVersionBits = 8;
inline constexpr int kModeAt = 16;
inline constexpr int kStrengthAt = 17;
inline constexpr int kFollowsAt = 18;
inline constexpr int kFollowsBits = 2;
inline constexpr int kZeroAt = 20;
inline constexpr int kZeroBits = 12;
inline constexpr int kValueAt = 32;

// Word 1: regions of source, destination and word, then zeros.
inline constexpr int kRegionBits = 16;
// Further words: offsets, and the size. All others are zero.
inline constexpr int kSourceWord = 2;
inline constexpr int kDestinationWord = 3;
inline constexpr int kSignalWord = 4;
inline constexpr int kBytesWord = 5;

// A slot holds a descriptor of lap n once the phase bit of word 0, stored last, has the value of
// that lap. Slots are zero at first, so the first lap writes 1.
struct alignas(64) RingSlot {
  std::uint64_t words[kDescriptorWords];
};
static_assert(sizeof(RingSlot) == 64);

}  // namespace harpe::transport
