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
  // Ranks may share a GPU: rank r runs on GPU r modulo the number of GPUs. Kernels of such ranks
  // run in turn, so times mean nothing.
  bool share_gpus = false;
  // The same for the ranks of one process, each with SMs of its own: they run the kernels of ranks
  // with a GPU each, on fewer SMs. Not with `launch`.
  bool divide_gpus = false;
  std::optional<std::string> kernel_cache = std::nullopt;  // a folder; none: always compile
  std::optional<std::string> nvrtc = std::nullopt;         // the compiler's library
  std::vector<std::string> cuda_folders = {};              // otherwise, where to look for it
  CollectiveEngine collectives = CollectiveEngine::Auto;
  std::vector<std::string> library_folders = {};  // where to look for NCCL
  // This process is one of several that call this with the same plan, and has one of its ranks.
  std::optional<processes::Launch> launch = std::nullopt;
  // For plans with puts by proxy: how their nodes are connected.
  cuda::NetworkOptions network = {};
  // The limit of each wait; kernels that wait inside contain it, and RunOptions must equal it.
  std::chrono::milliseconds wait_limit{10'000};
  bool trace = false;  // RunOptions may request one
  // Called for each process that is refused while this one waits for others.
  std::function<void(const Diag&)> warn = [](const Diag&) {};
  // Called before anything is launched; a refusal ends make_cuda_executor.
  std::function<Checked<Ok>(const launch::LaunchPlan&)> prove = [](const launch::LaunchPlan&) {
    return Checked<Ok>(Ok{});
  };
  // Tests: a driver that refuses calls; null: the machine's.
  std::shared_ptr<const cuda::DriverApi> driver = nullptr;
  // Tests: the task runs, but its signals reach no other rank.
  std::optional<TaskId> drop_signal_of = std::nullopt;
  // Tests: at this task a kernel writes to unmapped memory.
  std::optional<TaskId> stray_at = std::nullopt;
  // Tests: streams pause before their tasks, for a different time in every epoch.
  std::optional<std::uint32_t> delay_seed = std::nullopt;
};

// Runs each rank on a GPU of this machine. Queues are streams of one captured graph, which is
// replayed for every execution without the host waiting in between. Ranks synchronize by signals in
// device memory. A fault names the waiting rank and its signal; the GPUs stay usable. With
// `launch`, each rank has its own process. All processes make an executor, give it the same inputs,
// run it equally often and destroy it; any of them may request outputs, which are whole. If the
// plan has puts by proxy, the first mesh axis numbers the nodes: data and signals to another node
// go through pinned host memory and a transport.
// Requires: a verified plan. It is copied.
// Errors: G002, G003, G005 to G007 no driver, compiler or suitable GPU; G070 too few GPUs; G071 no
// peer access; G072, G074, G075 not supported on GPUs; G073 memory; N010 to N017 other processes;
// G080, G082 NCCL; G090, G091 accesses that cannot cross nodes; N0xx the transport; X0xx not
// supported by any executor; X010 tasks; F1xx of Blocks::make; those of `prove`.
[[nodiscard]] Checked<std::unique_ptr<Executor>> make_cuda_executor(const Plan& plan,
                                                                    const CudaOptions& options);

}  // namespace harpe
