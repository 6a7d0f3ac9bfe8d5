#pragma once

#include "exec/cuda/device/wait_args.h"
#include "exec/cuda/signals/device/enqueue.h"

// The arguments of the kernels of enqueue_test.cpp; NVRTC compiles this header too.
namespace harpe::device {

inline constexpr int kMessageWords = 8;
inline constexpr int kMessageBytes = 64;
inline constexpr int kFlagBytes = 64;  // one flag per sending block

struct StressArgs {
  WaitContext context;
  RingView ring;
  std::uint64_t words[transport::kBytesWord + 1];  // of every descriptor, without places
  std::uint64_t* source;
  const std::uint64_t* landing;
  std::uint64_t landing_at;    // offset in the other rank's region
  const std::uint32_t* flags;  // the start of that region
  std::uint32_t* early;        // count of words behind their signal
  std::uint32_t each;          // messages per block
};

HP_SHARED_CODE std::uint64_t number_of(std::uint64_t block, std::uint64_t number, int word) {
  return block << 48 | number << 8 | static_cast<std::uint64_t>(word + 1);
}

}  // namespace harpe::device
