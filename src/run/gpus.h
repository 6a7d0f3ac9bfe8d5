#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exec/executor.h"
#include "exec/group/group.h"
#include "ir/tensor.h"
#include "run/cuda_places.h"
#include "support/diag.h"

namespace harpe {

class Baselines;
struct BackendRequest;
struct Examination;
struct KernelListing;
struct KernelRequest;
namespace cuda::profile {
struct GpuFigures;
}

// A request to measure the GPUs of this machine.
struct GpuProfileRequest {
  std::int64_t gpus = 0;  // that work at once; 0: all GPUs
  bool quick = false;     // few and small shapes: rough figures
  CudaPlaces places = {};
  std::function<void(std::string_view stage)> progress = {};
};

// Free bytes of each of the first GPUs; empty if a GPU does not report them.
using FreeMemory = std::function<std::vector<std::int64_t>()>;

// What a build with a back end for GPUs offers.
class Gpus {
 public:
  virtual ~Gpus() = default;
  // Errors of all functions that open the driver: G002, G003, G005 it is missing or does not run.
  [[nodiscard]] virtual Checked<int> count() const = 0;
  // "NVIDIA H200"; "" without a GPU.
  [[nodiscard]] virtual std::string name() const = 0;
  // Errors: those of make_cuda_executor.
  [[nodiscard]] virtual Checked<std::unique_ptr<Executor>> make_executor(
      const Plan& plan, const BackendRequest& request) const = 0;
  // Collective. Errors: those of cuda::join_group.
  [[nodiscard]] virtual Checked<std::unique_ptr<RankGroup>> join_group(
      const GroupRequest& request, int gpu, const CudaPlaces& places) const = 0;

  // `harpe doctor`: adds the GPUs, and the libraries that the GPU back end opens.
  virtual void examine(const CudaPlaces& places, Examination& examination) const = 0;
  // Compiles on all processors in parallel; needs no GPU. Errors: G020 an unknown name; G002, G003
  // no compiler.
  [[nodiscard]] virtual Checked<KernelListing> list_kernels(const KernelRequest& request) const = 0;

  // Opens NCCL and kernel libraries for `ranks` ranks. Errors: those of opening them; G070.
  [[nodiscard]] virtual Checked<std::unique_ptr<Baselines>> open_baselines(
      int ranks, const CudaPlaces& places) const = 0;
  // Keeps the first GPUs' contexts. Errors: those of count; G006, G007.
  [[nodiscard]] virtual Checked<FreeMemory> watch_memory(int gpus) const = 0;
  // While the result lives, GPUs read large tensors in place, so that executors receive them in a
  // fraction of the time. Small tensors, and those that cannot be pinned, are unaffected. Requires:
  // the tensors do not change or move in the meantime.
  [[nodiscard]] virtual std::shared_ptr<const void> pin(const TensorMap& tensors) const = 0;

  // Errors: those of cuda::profile::measure_gpus.
  [[nodiscard]] virtual Checked<cuda::profile::GpuFigures> measure(
      const GpuProfileRequest& request) const = 0;
};

// The only place that knows which back ends are in the binary. Errors: G001 a build without CUDA.
[[nodiscard]] Checked<const Gpus*> find_gpus();

}  // namespace harpe
