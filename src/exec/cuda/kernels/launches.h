#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "exec/cuda/jit/kernel_library.h"
#include "exec/cuda/kernels/attention/prepared_attention.h"
#include "exec/cuda/kernels/backward/prepared_backward.h"
#include "exec/cuda/kernels/gemm/prepared_gemm.h"
#include "exec/cuda/kernels/launch_spec.h"
#include "exec/cuda/kernels/leaves.h"
#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {

// What launches are made ready with.
struct LaunchTools {
  KernelLibrary& kernels;  // outlives them
  int multiprocessors;     // that may work at once
  // Where there are launches of libraries: outlives them too.
  library::Leaves* leaves = nullptr;
  library::LeafPlace place = {};
  // Of the stream that they are for; null: each GEMM has its own.
  std::shared_ptr<GemmSums> sums = nullptr;
  // Of a GEMM, the variant and how its last tiles are cut; none: chosen for the multiprocessors.
  std::optional<GemmChoice> gemm = std::nullopt;
};

// Launches and copies in order, made once and enqueued any number of times, into a stream or a
// graph that is captured. Enqueueing allocates nothing.
class Launches {
 public:
  // Errors: G005; those of loading kernels, and of library::Leaves.
  [[nodiscard]] Checked<Ok> add(const LaunchTools& tools, const LaunchSpec& spec);

  // Orders all of it. Requires: the GPU is current for the calling thread.
  [[nodiscard]] Result<Ok, CudaError> enqueue(CUstream stream) const;

  [[nodiscard]] std::size_t size() const { return runs_.size(); }
  // Whether other ranks must order theirs too.
  [[nodiscard]] bool meets_others() const;

 private:
  struct PlainRun {
    const LoadedKernel* kernel;
    LaunchShape shape;
    PlainArgs args;
    std::unique_ptr<DeviceMemory> table;  // where the arguments point at one
  };
  using Run = std::variant<PlainRun, CopyLaunch, std::unique_ptr<PreparedGemm>,
                           std::unique_ptr<PreparedAttention>, std::unique_ptr<PreparedBackward>,
                           library::NcclCall, library::Step>;

  [[nodiscard]] static Checked<Run> prepare(const LaunchTools& tools, const LaunchSpec& spec);
  [[nodiscard]] static Checked<Run> prepare_leaf(const LaunchTools& tools, const LaunchSpec& spec);
  [[nodiscard]] Result<Ok, CudaError> enqueue(const Run& run, CUstream stream) const;

  const DriverApi* driver_ = nullptr;
  std::vector<Run> runs_;
};

// Where and for whom actions are made ready.
struct ActionContext {
  KernelLibrary& library;  // of the rank's GPU
  LaunchChoice choice;
};

// Appends what the action becomes. Errors: those of plan_launches and of Launches::add.
[[nodiscard]] Checked<Ok> add_launches(ActionContext& context, const actions::Action& action,
                                       Launches& launches);

}  // namespace harpe::cuda
