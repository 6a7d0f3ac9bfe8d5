#pragma once

#include "exec/cuda/device/types.h"

namespace harpe::device {

struct StampArgs {
  std::uint64_t* at;
};

// How host and GPU ask each other for the time, in pinned host memory. The host raises `asked`; the
// GPU answers each by its clock and raises `answered` to the same, last by one more once it has
// written `step_ns`.
struct ClockPage {
  std::uint32_t asked;
  std::uint32_t answered;
  std::uint64_t gpu_ns;
  std::uint64_t step_ns;  // the smallest by which the clock was seen to advance
};

struct AnswerClockArgs {
  ClockPage* page;
  std::uint32_t rounds;
  std::uint64_t limit_ns;  // of all of them: after it the GPU answers no more
};

}  // namespace harpe::device
