#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "exec/cuda/kernels/launch_spec.h"
#include "exec/cuda/kernels/plain/device/plain_args.h"
#include "exec/cuda/kernels/plain/device/route_args.h"
#include "exec/cuda/kernels/plain/plain_variants.h"

namespace harpe::cuda {

// One launch of a plain kernel.
using PlainArgs =
    std::variant<device::MoveArgs, device::MapArgs, device::SumArgs, device::CombineArgs,
                 device::RowDotArgs, device::AddRmsNormArgs, device::PlainGemmArgs,
                 device::PlainAttentionArgs, device::PlainBackwardArgs, device::ChooseArgs,
                 device::LimitArgs, device::RouteArgs>;
struct PlainLaunch {
  PlainKernel kernel = PlainKernel::Move;
  bool wide = false;
  std::int64_t blocks = 1;
  PlainArgs args;
  // The table that RouteArgs, MoveArgs or MapArgs point at; preparation copies it to GPU memory.
  std::vector<std::byte> table = {};
  std::int64_t places = 1;  // height of the grid: one row of thread blocks per StridedPlace
};

[[nodiscard]] std::unique_ptr<KernelLaunch> make_launch(PlainLaunch launch);

// A launch that copies the number of rows in use.
[[nodiscard]] PlainLaunch copy_of_number(std::int32_t* to, const std::int32_t* from);

}  // namespace harpe::cuda
