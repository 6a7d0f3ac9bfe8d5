#pragma once

#include "exec/cuda/device/types.h"

namespace harpe::device {

struct StampArgs {
  std::uint64_t* at;
};

// The pinned host memory through which the host queries the GPU's clock. The host increments
// `asked`; for each query the GPU stores its time and sets `answered` to the same number, and
// finally to one more once it has written `step_ns`.
struct ClockPage {
  std::uint32_t asked;
  std::uint32_t answered;
  std::uint64_t gpu_ns;
  std::uint64_t step_ns;  // smallest observed increment of the clock
};

struct AnswerClockArgs {
  ClockPage* page;
  std::uint32_t rounds;
  std::uint64_t limit_ns;  // of all rounds together: afterwards the GPU stops answering
};

}  // namespace harpe::device
