#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exec/cuda/executor/cuda_executor.h"
#include "exec/cuda/executor/prepared.h"
#include "exec/cuda/executor/rank_program.h"
#include "exec/cuda/jit/nvrtc.h"
#include "exec/cuda/runtime/device.h"
#include "exec/cuda/signals/peers.h"
#include "exec/processes/process_group.h"
#include "plan/plan.h"

namespace harpe::cuda {

// What a process needs to run its ranks.
struct ExecutorTools {
  std::shared_ptr<const DriverApi> driver;
  std::vector<Device> devices;  // of this process's ranks
  Nvrtc compiler;
  bool shares_gpus = false;   // several ranks have one GPU
  bool divides_gpus = false;  // and each of them a part of it

  // SMs that launches are planned for: the fewest that a rank has.
  [[nodiscard]] int multiprocessors() const {
    int least = devices.front().facts().multiprocessors;
    for (const Device& device : devices) least = std::min(least, device.facts().multiprocessors);
    return least;
  }
};

// Errors: those of open_driver, gpus_of, Device::open and Nvrtc::open.
[[nodiscard]] Checked<ExecutorTools> open_tools(const Plan& plan, const CudaOptions& options);

// Arenas and signals of all ranks. Errors: those of Peers::join with a group, else of Peers::open.
[[nodiscard]] Checked<Peers> peers_of(const ExecutorTools& tools,
                                      std::optional<processes::ProcessGroup>& group,
                                      std::int64_t bytes, std::int32_t signals);

// Runs the collectives of NCCL once, before there are inputs, because it overwrites memory. Errors:
// G005.
[[nodiscard]] Checked<Ok> warm_up_collectives(Prepared& prepared,
                                              const std::vector<RankProgram>& programs,
                                              std::chrono::milliseconds limit);

}  // namespace harpe::cuda
