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

// What is measured of the GPUs of this machine.
struct GpuProfileRequest {
  std::int64_t gpus = 0;  // that work at once; 0: all there are
  bool quick = false;     // few and small shapes: figures are rough
  CudaPlaces places = {};
  std::function<void(std::string_view stage)> progress = {};
};

// Bytes that each of the first GPUs has left; empty where one does not say.
using FreeMemory = std::function<std::vector<std::int64_t>()>;

// What a build with a back end for GPUs offers, by who asks.
class Gpus {
 public:
  virtual ~Gpus() = default;
  // Errors, of what opens the driver: G002, G003, G005 there is none, or none that runs.
  [[nodiscard]] virtual Checked<int> count() const = 0;
  // "NVIDIA H200"; "" where there is none.
  [[nodiscard]] virtual std::string name() const = 0;
  // Errors: make_cuda_executor's.
  [[nodiscard]] virtual Checked<std::unique_ptr<Executor>> make_executor(
      const Plan& plan, const BackendRequest& request) const = 0;
  // Collective. Errors: cuda::join_group's.
  [[nodiscard]] virtual Checked<std::unique_ptr<RankGroup>> join_group(
      const GroupRequest& request, int gpu, const CudaPlaces& places) const = 0;

  // `harpe doctor`: adds the GPUs, and the libraries that are opened for them.
  virtual void examine(const CudaPlaces& places, Examination& examination) const = 0;
  // Compiles on all processors at once; needs no GPU. Errors: G020 a name is none; G002, G003 there
  // is no compiler.
  [[nodiscard]] virtual Checked<KernelListing> list_kernels(const KernelRequest& request) const = 0;

  // Opens NCCL and libraries of kernels, for so many ranks. Errors: those of opening them; G070.
  [[nodiscard]] virtual Checked<std::unique_ptr<Baselines>> open_baselines(
      int ranks, const CudaPlaces& places) const = 0;
  // Keeps the first GPUs' contexts. Errors: count's; G006, G007.
  [[nodiscard]] virtual Checked<FreeMemory> watch_memory(int gpus) const = 0;
  // While the result lives GPUs read large tensors where they lie: executors are given them in a
  // fraction of the time. The others, and those that no GPU can have so, are as they were.
  // Requires: the tensors stay as they are as long.
  [[nodiscard]] virtual std::shared_ptr<const void> pin(const TensorMap& tensors) const = 0;

  // Errors: those of cuda::profile::measure_gpus.
  [[nodiscard]] virtual Checked<cuda::profile::GpuFigures> measure(
      const GpuProfileRequest& request) const = 0;
};

// The one place that knows which back ends are in the binary. Errors: G001 a build without CUDA.
[[nodiscard]] Checked<const Gpus*> find_gpus();

}  // namespace harpe
