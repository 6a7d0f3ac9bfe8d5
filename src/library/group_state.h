#pragma once

#include <memory>

#include "exec/group/group.h"
#include "harpe/group.h"

// What a public group stands for.
struct harpe::v1::Group::State {
  std::shared_ptr<Exchange> exchange;
  std::unique_ptr<RankGroup> group;
  bool is_on_gpu = false;
};

namespace harpe::library {

// Of a call: what could not be done, or what has happened.
[[nodiscard]] v1::Error to_error(const LaunchFailure& failure);

}  // namespace harpe::library
