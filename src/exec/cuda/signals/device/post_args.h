#pragma once

#include "exec/cuda/signals/device/enqueue.h"
#include "exec/cuda/signals/device/signal_args.h"

namespace harpe::device {

// A descriptor and its ring. The descriptor lacks its value: the epoch in which it is posted.
struct Post {
  RingView ring;
  std::uint64_t words[transport::kBytesWord + 1];  // the others are 0
  std::uint32_t name;                              // of a wait for space: FlagWait::name
};

// One lane of a warp posts each.
struct PostArgs {
  WaitContext context;
  std::int32_t count;
  Post posts[kMostSignals];
};
static_assert(sizeof(PostArgs) <= 4096, "what a launch takes along");

}  // namespace harpe::device
