#pragma once

#include <memory>

#include "exec/group/group.h"
#include "harpe/group.h"

// What a public group holds.
struct harpe::v1::Group::State {
  std::shared_ptr<Exchange> exchange;
  std::unique_ptr<RankGroup> group;
  bool is_on_gpu = false;
};

namespace harpe::library {

// The error of a launch that was refused, or of an execution that failed.
[[nodiscard]] v1::Error to_error(const LaunchFailure& failure);

}  // namespace harpe::library
