#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/site.h"
#include "exec/executor.h"
#include "exec/processes/launch_environment.h"
#include "launch/target.h"
#include "plan/plan.h"
#include "run/cuda_places.h"
#include "support/diag.h"

namespace harpe {

// What this machine uses to run the back end.
[[nodiscard]] Site find_site(Backend backend);

struct BackendRequest {
  Backend backend = Backend::Cpu;
  // The launches that CPU ranks run: their own, or, to simulate them without a GPU, those of GPUs.
  Backend target = Backend::Cpu;
  bool share_gpus = false;   // ranks may share a GPU
  bool divide_gpus = false;  // ranks that share a GPU have SMs of their own
  CudaPlaces places;
  CollectiveEngine collectives = CollectiveEngine::Auto;
  // This process has a part of the ranks (one on GPUs); the other processes of the launch have the
  // others.
  std::optional<processes::Launch> launch;
  bool uses_libraries = true;  // on CPU ranks: for GEMMs
  // Of the transport between hosts or nodes; none: tcp;ofi_rxm for CPU ranks, shared for GPUs.
  std::optional<std::string> provider;
  std::string interface;  // of its network; "": the provider chooses
  std::chrono::milliseconds wait_limit{10'000};
  bool trace = false;  // RunOptions may request one
  // Called for each process that is refused while this one waits for others.
  std::function<void(const Diag&)> warn = [](const Diag&) {};
  // Tests: CPU ranks lose the worker that reaches the task; on a GPU its signals are dropped.
  std::optional<TaskId> lose_at;
  std::optional<TaskId> stray_at;           // tests: a kernel writes to unmapped memory; CUDA only
  std::optional<std::uint32_t> delay_seed;  // tests: tasks start after random delays
};

// Of processes that run together: whether this one shows and writes the results.
[[nodiscard]] inline bool is_first(const BackendRequest& request) {
  return !request.launch || request.launch->rank == 0;
}

// The target of launches for the back end's ranks (launch/make_launches.h): CPU ranks, or H200s
// with one rank per GPU; neither needs to be present. `takes_turns`: several plans use the ranks'
// memory in turn. Errors: G001 a build without CUDA.
[[nodiscard]] Checked<std::unique_ptr<launch::Target>> make_target(Backend backend,
                                                                   bool takes_turns = false);

// The only place that knows every executor. Launches of GPUs are proved before they run. Errors:
// those of make_cpu_executor, make_cuda_executor, make_gpu_launches and verify_launches; G001 a
// build without CUDA; N016 GPUs of several hosts.
[[nodiscard]] Checked<std::unique_ptr<Executor>> make_executor(const Plan& plan,
                                                               const BackendRequest& request);

}  // namespace harpe
