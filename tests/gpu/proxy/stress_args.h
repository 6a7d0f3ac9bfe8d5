#pragma once

#include "exec/cuda/device/wait_args.h"
#include "exec/cuda/signals/device/enqueue.h"

// What the kernels of enqueue_test.cpp are given; for NVRTC too.
namespace harpe::device {

inline constexpr int kMessageWords = 8;
inline constexpr int kMessageBytes = 64;
inline constexpr int kFlagBytes = 64;  // one for each block that sends

struct StressArgs {
  WaitContext context;
  RingView ring;
  std::uint64_t words[transport::kBytesWord + 1];  // of every descriptor, but for places
  std::uint64_t* source;
  const std::uint64_t* landing;
  std::uint64_t landing_at;    // in the region of the other rank
  const std::uint32_t* flags;  // where that region begins
  std::uint32_t* early;        // words that were not there when their signal was
  std::uint32_t each;          // messages of a block
};

HP_SHARED_CODE std::uint64_t number_of(std::uint64_t block, std::uint64_t number, int word) {
  return block << 48 | number << 8 | static_cast<std::uint64_t>(word + 1);
}

}  // namespace harpe::device
