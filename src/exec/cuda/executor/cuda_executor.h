#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/collective_use.h"
#include "exec/cuda/executor/network_options.h"
#include "exec/executor.h"
#include "exec/processes/launch_environment.h"
#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

namespace cuda {
struct DriverApi;
}

struct CudaOptions {
  // Ranks may share a GPU: rank r runs on GPU r modulo their number. Its kernels then take turns
  // with other ranks', which says nothing about speed.
  bool share_gpus = false;
  std::optional<std::string> kernel_cache = std::nullopt;  // a folder; none: compile anew
  std::optional<std::string> nvrtc = std::nullopt;         // the compiler's library
  std::vector<std::string> cuda_folders = {};              // else where to look for it
  CollectiveEngine collectives = CollectiveEngine::Auto;
  std::vector<std::string> library_folders = {};  // where to look for NCCL
  // This process is one of several that call this with the same plan, and has one of its ranks.
  std::optional<processes::Launch> launch = std::nullopt;
  // Of plans that put by proxy: how their nodes are joined.
  cuda::NetworkOptions network = {};
  // Of a wait; kernels that wait inside are made for it, and RunOptions must say the same.
  std::chrono::milliseconds wait_limit{10'000};
  bool trace = false;  // RunOptions may ask for one
  // Told of processes that are refused while others are waited for.
  std::function<void(const Diag&)> warn = [](const Diag&) {};
  // Asked before anything is launched; a refusal ends make_cuda_executor.
  std::function<Checked<Ok>(const launch::LaunchPlan&)> prove = [](const launch::LaunchPlan&) {
    return Checked<Ok>(Ok{});
  };
  // Tests: a driver that refuses calls; none: the machine's.
  std::shared_ptr<const cuda::DriverApi> driver = nullptr;
  // Tests: the task runs, but its signals reach no other rank.
  std::optional<TaskId> drop_signal_of = std::nullopt;
  // Tests: at the task a kernel writes where no memory is.
  std::optional<TaskId> stray_at = std::nullopt;
  // Tests: streams rest before their tasks, each time for another time.
  std::optional<std::uint32_t> delay_seed = std::nullopt;
};

// Runs each rank on a GPU of this machine: queues are streams of one captured graph, which is
// replayed for every execution without the host waiting in between; ranks signal each other by
// signals in device memory. A fault names who waited for what; the GPUs stay usable.
// With `launch`, each rank in a process of its own: all of them make an executor, give it the same
// inputs, run it as often and destroy it, and any may ask it for outputs, which are whole.
// Where the plan puts anything by proxy, the first axis of its mesh says which node a rank is on:
// what goes to another goes through pinned memory of the host and a transport, signals too.
// Requires: a verified plan. It is copied.
// Errors: G002, G003, G005 to G007 no driver, compiler or fit GPU; G070 too few GPUs; G071 no
// peers; G072, G074, G075 what does not run on GPUs; G073 memory; N010 to N017 other processes;
// G080, G082 NCCL; G090, G091 what does not cross nodes; N0xx the transport; X0xx what no executor
// computes; X010 tasks; F1xx of Blocks::make; those of `prove`.
[[nodiscard]] Checked<std::unique_ptr<Executor>> make_cuda_executor(const Plan& plan,
                                                                    const CudaOptions& options);

}  // namespace harpe
