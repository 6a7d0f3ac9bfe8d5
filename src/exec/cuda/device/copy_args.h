#pragma once

#include "exec/cuda/device/wait_args.h"

namespace harpe::device {

// One copy by communication blocks: `bytes` (a multiple of 16, like both addresses) once `ready` is
// reached, in granules of kCopyGranule; each granule that has arrived adds one to `done`.
struct CopyJob {
  const void* from;
  void* to;
  std::int64_t bytes;
  FlagWait ready;
  std::uint32_t* done;  // in the waiting GPU's memory; null: no rank waits
};

inline constexpr std::int64_t kCopyGranule = 32 * 1024;

// How much `done` of a job grows in total.
HP_SHARED_CODE std::uint32_t copy_arrivals(std::int64_t bytes) {
  return static_cast<std::uint32_t>((bytes + kCopyGranule - 1) / kCopyGranule);
}

}  // namespace harpe::device
