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

// What does the work there, on this machine.
[[nodiscard]] Site find_site(Backend backend);

struct BackendRequest {
  Backend backend = Backend::Cpu;
  // Whose launches CPU ranks run: their own, or, to see them work without a GPU, those of GPUs.
  Backend target = Backend::Cpu;
  bool share_gpus = false;  // ranks may share a GPU
  CudaPlaces places;
  CollectiveEngine collectives = CollectiveEngine::Auto;
  // This process has some of the ranks (on GPUs one), and others that run the same have the others.
  std::optional<processes::Launch> launch;
  bool uses_libraries = true;  // on CPU ranks: for products of matrices
  // Of the transport between hosts or nodes; none: tcp;ofi_rxm for CPU ranks, shared for GPUs.
  std::optional<std::string> provider;
  std::string interface;  // of the network that it uses; "" for its choice
  std::chrono::milliseconds wait_limit{10'000};
  bool trace = false;  // RunOptions may ask for one
  // Told of processes that are refused while others are waited for.
  std::function<void(const Diag&)> warn = [](const Diag&) {};
  // Tests: CPU ranks lose the worker that reaches the task; on a GPU its signals never come.
  std::optional<TaskId> lose_at;
  std::optional<TaskId> stray_at;           // tests: a kernel writes where no memory is; CUDA alone
  std::optional<std::uint32_t> delay_seed;  // tests: tasks begin after random delays
};

// Of processes that run together, whether this one shows and writes what came of it.
[[nodiscard]] inline bool is_first(const BackendRequest& request) {
  return !request.launch || request.launch->rank == 0;
}

// What the back end's ranks run on, to make launches for (launch/make_launches.h): CPU ranks, or
// H200s, a rank to a GPU; neither needs to be there. `takes_turns`: plans do, with the ranks'
// memory. Errors: G001 a build without CUDA.
[[nodiscard]] Checked<std::unique_ptr<launch::Target>> make_target(Backend backend,
                                                                   bool takes_turns = false);

// The one place that knows every executor. Launches of GPUs are proved before they run.
// Errors: make_cpu_executor's, make_cuda_executor's; make_gpu_launches' and verify_launches'; G001
// a build without CUDA; N016 GPUs of several hosts.
[[nodiscard]] Checked<std::unique_ptr<Executor>> make_executor(const Plan& plan,
                                                               const BackendRequest& request);

}  // namespace harpe
