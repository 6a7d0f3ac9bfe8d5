#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "exec/actions/action.h"
#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/backward/backward.h"
#include "exec/cuda/kernels/gemm/gemm.h"
#include "exec/cuda/kernels/plain/device/plain_args.h"
#include "exec/cuda/kernels/plain/plain_variants.h"
#include "exec/cuda/kernels/route/device/route_args.h"
#include "exec/cuda/library/nccl.h"

namespace harpe::cuda {

// A run of a plain kernel.
using PlainArgs =
    std::variant<device::MoveArgs, device::MapArgs, device::CombineArgs, device::RowDotArgs,
                 device::PlainGemmArgs, device::PlainAttentionArgs, device::PlainBackwardArgs,
                 device::ChooseArgs, device::LimitArgs, device::RouteArgs>;
struct PlainLaunch {
  PlainKernel kernel = PlainKernel::Move;
  bool wide = false;
  std::int64_t blocks = 1;
  PlainArgs args;
  // What RouteArgs, MoveArgs and MapArgs point at, to be put into GPU memory.
  std::vector<std::byte> table = {};
  std::int64_t places = 1;  // rows of blocks of the grid: one for each of the table's
};

// A copy by the copy engine: rows of `bytes`, so far apart.
struct CopyLaunch {
  DeviceAddress to = 0;
  DeviceAddress from = 0;
  std::int64_t bytes = 0;
  std::int64_t rows = 1;
  std::int64_t to_pitch = 0;
  std::int64_t from_pitch = 0;
};

// What one launch does. GemmSpec, AttentionSpec and BackwardSpec are of the kernels for tensor
// cores; NcclCall is a rank's part of a collective.
using LaunchSpec =
    std::variant<PlainLaunch, CopyLaunch, GemmSpec, AttentionSpec, BackwardSpec, library::NcclCall>;

[[nodiscard]] inline bool is_by_library(const LaunchSpec& spec) {
  const auto* const product = std::get_if<GemmSpec>(&spec);
  const auto* const heads = std::get_if<AttentionSpec>(&spec);
  return (product != nullptr && product->engine == LeafEngine::Library) ||
         (heads != nullptr && heads->engine == LeafEngine::Library);
}

// Whether our kernels can run a launch on so many multiprocessors. Launches that were merged or
// given other operands are asked before they take the place of what they were made of; what a
// library runs is checked by the library. Errors: those of `check` of the launch's kind.
[[nodiscard]] Checked<Ok> check(const LaunchSpec& spec, int multiprocessors);

// What the choice of launches depends on, besides the action.
struct LaunchChoice {
  std::string nest;         // whose action it is, and
  std::string buffer;       // what it makes, for what is said
  std::string kernel = {};  // that `patch` named, or none
  bool by_copy_engine = false;
  int multiprocessors = 132;  // that may work at once
};

// What an action becomes, in order; pure. Addresses of the action are those of the GPU.
// Errors: G072 no kernel for it; G075 more loops than kernels walk and launches can be; G083 the
// library's kernel that was asked for cannot.
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan_launches(const LaunchChoice& choice,
                                                             const actions::Action& action);

// The same of each kind that needs more than a few lines.
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::Assign& assign);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::Add& add);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::Fill& fill);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::Apply& apply);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::Combine& combine);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::RowDot& products);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::Multiply& products);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::Attend& heads);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::Differentiate& heads);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::ChooseExperts& choose);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::LimitChoices& limit);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::GatherRows& gather);
[[nodiscard]] Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                                    const actions::CombineRows& combine);

}  // namespace harpe::cuda
