#pragma once

#include <array>
#include <vector>

#include "exec/cuda/kernels/plan_launches.h"
#include "exec/cuda/kernels/prepared_launches.h"
#include "measure/baselines/baseline.h"

namespace harpe::library {

// Rows of bytes that one launch moves: loops around them, outermost first, with steps in bytes.
// Addresses are multiples of 16.
struct Rows {
  struct Loop {
    std::int64_t length = 1;
    std::int64_t to = 0;
    std::int64_t from = 0;
  };
  cuda::DeviceAddress to = 0;
  cuda::DeviceAddress from = 0;
  std::int64_t bytes = 0;  // of a row
  std::vector<Loop> loops;
};

// Errors, here and below: those of loading kernels.
[[nodiscard]] Checked<Step> move_step(const Member& member, const Rows& rows);

// `count` dense f32 states (o, l) of the same rows, one after the other. The first becomes the
// combination of all; the others are undefined afterwards.
struct States {
  cuda::DeviceAddress o = 0;
  cuda::DeviceAddress l = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t count = 1;
  std::int64_t groups = 1;  // repetitions, one behind the other
};
[[nodiscard]] Checked<Step> combine_step(const Member& member, const States& states);

// Rounds `count` f32 numbers to the type.
[[nodiscard]] Checked<Step> round_step(const Member& member, cuda::DeviceAddress to,
                                       cuda::DeviceAddress from, std::int64_t count,
                                       device::Element type);

// An action of Harpe's executors. Addresses are those of the GPU.
[[nodiscard]] Checked<Step> action_step(const Member& member, const actions::Action& action);

// One of Harpe's kernels.
[[nodiscard]] Checked<Step> launch_step(const Member& member, const cuda::LaunchSpec& spec);

}  // namespace harpe::library
