#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/collective_use.h"
#include "exec/fault.h"
#include "ir/tensor.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "support/result.h"

namespace harpe {

// One executed task, for traces. Times count from the start of the first execution; on GPUs, of the
// traced one.
struct TraceEvent {
  TaskId task;
  TaskId kernel{};  // the first task of its kernel, if KernelEvents describe that kernel
  std::chrono::nanoseconds start{0};
  std::chrono::nanoseconds end{0};
  // Wait before `start` for signals, events and other members; 0 on CPU ranks, which cannot tell it
  // from waiting for a core.
  std::chrono::nanoseconds waited{0};
};

// On GPUs: what a KernelEvent of a kernel that waits inside describes.
enum class KernelPart : std::uint8_t {
  Held,   // the kernel, from when its queue reached it until all that it starts behind was done
  Work,   // a block, from its start until all its results were stored
  Stand,  // a block that had no work left but what it waited for
};
struct KernelEvent {
  TaskId kernel;  // the first of its tasks
  std::int32_t block = 0;
  KernelPart part = KernelPart::Work;
  bool copies = false;  // the block copies; otherwise it computes
  std::chrono::nanoseconds start{0};
  std::chrono::nanoseconds end{0};
  friend bool operator==(const KernelEvent&, const KernelEvent&) = default;
};

// Network traffic to other hosts over all executions of a run, and the cost of its ordering.
struct NetworkStats {
  std::int64_t puts = 0;
  std::int64_t bytes = 0;
  std::int64_t signals = 0;
  std::int64_t nic_fences = 0;  // writes with a fence of the network
  std::int64_t quiets = 0;      // ordering points at which a proxy waited, or would have waited
  std::chrono::nanoseconds stalled{0};

  NetworkStats& operator+=(const NetworkStats& other) {
    puts += other.puts;
    bytes += other.bytes;
    signals += other.signals;
    nic_fences += other.nic_fences;
    quiets += other.quiets;
    stalled += other.stalled;
    return *this;
  }
};

struct RunStats {
  std::vector<std::chrono::nanoseconds> iterations;  // wall time of each execution
  std::chrono::nanoseconds cpu_time{0};              // all workers, all executions
  std::int64_t bytes_moved = 0;  // Copy and Collective bytes of one execution, all ranks
  std::int64_t peak_bytes = 0;   // arena of one rank
  // Of the last execution; on GPUs, of an additional one. Empty unless requested.
  std::vector<TraceEvent> trace;
  std::vector<KernelEvent> kernels{};  // of the same execution
  // How far the trace's times on one rank may be off against those on another.
  std::chrono::nanoseconds clock_uncertainty{0};
  std::optional<NetworkStats> network;     // if ranks are on several hosts
  std::vector<CollectiveUse> collectives;  // on GPUs
};

struct RunOptions {
  std::int64_t iterations = 1;
  std::chrono::milliseconds wait_limit{10'000};
  bool trace = false;
  // On GPUs: one time for all executions after the first, their mean, without timestamps between
  // them. A timestamp ends an execution before the next one begins. CPU ranks time each.
  bool in_a_row = false;
  // Called about ten times a second by the running thread with the number of finished steps of this
  // process's ranks and their total; must not throw. If it returns false, no further step begins
  // and the run is a fault. GPUs do not call it.
  std::function<bool(std::int64_t done, std::int64_t of)> progress = {};
};

// Runs a verified plan. `prepare`, once per plan, allocates arenas and resolves every address.
// `run` may then be called any number of times and allocates nothing per task. After a fault the
// executor is broken: only destruction is legal.
class Executor {
 public:
  virtual ~Executor() = default;

  // Scatters a whole tensor to its homes, rounded to the buffer's dtype. Every `in` buffer must be
  // set before the first run. Requires: shape matches the program's. Errors: G005.
  [[nodiscard]] virtual Checked<Ok> set_input(const std::string& buffer,
                                              const HostTensor& tensor) = 0;
  [[nodiscard]] virtual Result<RunStats, FaultReport> run(const RunOptions& options) = 0;
  // Gathers an output's homes into a whole tensor of the buffer's dtype. Requires: a run succeeded,
  // and all replicas are bitwise equal (HP_CHECK). Errors: G005.
  [[nodiscard]] virtual Checked<HostTensor> output(const std::string& buffer) const = 0;
  // GPU memory that this executor has allocated so far, on the GPU with the most: arenas of its
  // ranks, their signals, scratch and tables of kernels. 0 without a GPU.
  [[nodiscard]] virtual std::int64_t allocated_bytes() const { return 0; }
};

}  // namespace harpe
