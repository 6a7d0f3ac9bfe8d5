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

// One executed task, for traces. Times are since the first execution began; on GPUs, since the
// traced one did.
struct TraceEvent {
  TaskId task;
  TaskId kernel{};  // where KernelEvents tell of the kernel it was part of: that one's first task
  std::chrono::nanoseconds start{0};
  std::chrono::nanoseconds end{0};
  // Up to the start, for signals, events and other members; 0 on CPU ranks, which do not tell it
  // from waiting for a core.
  std::chrono::nanoseconds waited{0};
};

// On GPUs, of a kernel that waits inside: what became of it, or of one of its blocks.
enum class KernelPart : std::uint8_t {
  Held,   // all of it, from when its queue had come to it until all was there that it begins behind
  Work,   // a block, from its begin until all it made was stored
  Stand,  // a block that had nothing left to work on but what it waited for
};
struct KernelEvent {
  TaskId kernel;  // the first of its tasks
  std::int32_t block = 0;
  KernelPart part = KernelPart::Work;
  bool copies = false;  // the block copies; else it multiplies
  std::chrono::nanoseconds start{0};
  std::chrono::nanoseconds end{0};
  friend bool operator==(const KernelEvent&, const KernelEvent&) = default;
};

// What went to other hosts by network, in all executions of a run, and what its order cost.
struct NetworkStats {
  std::int64_t puts = 0;
  std::int64_t bytes = 0;
  std::int64_t signals = 0;
  std::int64_t nic_fences = 0;  // writes that asked the network to order them
  std::int64_t quiets = 0;      // ordering points at which a proxy waited, or would have
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
  // Of the last execution, or on GPUs of one more; empty unless asked for.
  std::vector<TraceEvent> trace;
  std::vector<KernelEvent> kernels{};  // with it
  // By how much its times on one rank may be off against those on another.
  std::chrono::nanoseconds clock_uncertainty{0};
  std::optional<NetworkStats> network;     // where ranks are on several hosts
  std::vector<CollectiveUse> collectives;  // on GPUs
};

struct RunOptions {
  std::int64_t iterations = 1;
  std::chrono::milliseconds wait_limit{10'000};
  bool trace = false;
  // Called some ten times a second by the thread that runs, with how many steps of this process's
  // ranks are over and how many there are; must not throw. False: no further step begins, and the
  // run is a fault. GPUs do not ask.
  std::function<bool(std::int64_t done, std::int64_t of)> progress = {};
};

// Runs a verified plan. `prepare` once per plan: allocates arenas and resolves every address; then
// `run` as often as wanted, with no allocation per task. After a fault the executor is broken: only
// destruction is legal.
class Executor {
 public:
  virtual ~Executor() = default;

  // Scatters whole tensors to the homes (rounded to the buffer's dtype). Every `in` buffer once
  // before the first run. Requires: shape matches the program's. Errors: G005.
  [[nodiscard]] virtual Checked<Ok> set_input(const std::string& buffer,
                                              const HostTensor& tensor) = 0;
  [[nodiscard]] virtual Result<RunStats, FaultReport> run(const RunOptions& options) = 0;
  // Gathers an output's homes into a whole tensor of the buffer's dtype. Requires: a run succeeded,
  // and all replicas are bitwise equal (HP_CHECK). Errors: G005.
  [[nodiscard]] virtual Checked<HostTensor> output(const std::string& buffer) const = 0;
  // Of a GPU's memory what this has allocated by now, on the GPU where it is most: arenas of its
  // ranks, signals that they raise, scratch and tables of kernels. 0 where there is no GPU.
  [[nodiscard]] virtual std::int64_t allocated_bytes() const { return 0; }
};

}  // namespace harpe
