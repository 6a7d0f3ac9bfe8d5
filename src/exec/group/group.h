#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "exec/fault.h"
#include "exec/group/local_homes.h"
#include "plan/plan.h"
#include "support/diag.h"
#include "support/result.h"
#include "transport/exchange.h"

namespace harpe {

// Groups of ranks that a program already has, each a thread or a process. Ranks join a group, make
// executables of plans, and launch these on tensors of their own.

// Why a launch has no result: its arguments, plans that differ between ranks, or a fault of this
// execution (CPU ranks) or an earlier one (GPUs).
struct ExecutionFault {
  std::string plan;  // the plan that was executed: "ag_gemm on tp=2"
  FaultReport report;
};
using LaunchFailure = std::variant<Diag, ExecutionFault>;
// The failure of an execution of this plan.
[[nodiscard]] LaunchFailure make_failure(const Plan& plan, FaultReport report);

struct ExecutableCounts {
  std::int64_t launches = 0;
  std::int64_t copied_bytes = 0;  // between tensors and the group's memory, over all launches
};

// One rank's part of a plan. It keeps its group's memory alive; destruction is not collective.
class RankExecutable {
 public:
  RankExecutable() = default;
  RankExecutable(const RankExecutable&) = delete;
  RankExecutable& operator=(const RankExecutable&) = delete;
  virtual ~RankExecutable() = default;

  // Inputs, then outputs.
  [[nodiscard]] virtual const std::vector<LocalHome>& homes() const = 0;

  // One execution, of all ranks together: ranks launch a group's executables in the same order.
  // `tensors` correspond to homes(), with their types and shapes, and must live until the execution
  // ends. On GPUs the execution is ordered in `stream` (a CUstream of the rank's GPU) behind its
  // earlier work, and the host waits for nothing. While the stream is being captured, the execution
  // becomes part of that graph, and the executable must outlive the graph. CPU ranks compute at
  // once on the calling thread. Errors: I311 unsupported strides, or ranks that launch different
  // plans, or, on GPUs, tensors at different places of the group's memory; G005. A fault ends all
  // executions of the group until a reset.
  [[nodiscard]] virtual Result<Ok, LaunchFailure> launch(std::span<const TensorView> tensors,
                                                         void* stream) = 0;
  [[nodiscard]] virtual ExecutableCounts counts() const = 0;

  // Memory for the outputs of the next launch, in `stream`, that other ranks write, by home; null
  // for other homes, and without room, which on GPUs is the same on all ranks. All ranks call it in
  // the same order, or none does. The last pointer, on any thread, returns the memory for work that
  // is ordered behind that of the stream. Errors: what ended the group's executions.
  [[nodiscard]] virtual Result<std::vector<std::shared_ptr<std::byte>>, LaunchFailure> take_results(
      void* stream) = 0;
};

struct GroupCounts {
  std::int64_t heap_bytes = 0;    // that peers can access: arenas, shared by plans, and signals
  std::int64_t tensor_bytes = 0;  // of these, handed out by `allocate` and `take_results`
  std::int64_t executables = 0;
};

// What the executables of one rank share: the peers, and memory that peers can access, which
// executables use in turn. Calls of one group come from one thread at a time. All ranks make
// collective calls in the same order.
class RankGroup {
 public:
  RankGroup() = default;
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;
  virtual ~RankGroup() = default;

  // Collective. Requires: a verified plan. Errors: I311 the plan is for other ranks; N015 ranks
  // have different plans; N010, N017 another rank failed; X0xx, G0xx this back end cannot run it;
  // X005, G073 memory.
  [[nodiscard]] virtual Checked<std::unique_ptr<RankExecutable>> make(const Plan& plan) = 0;
  // The failure that ended the group's executions; none if no failure is known yet.
  [[nodiscard]] virtual std::optional<LaunchFailure> check() = 0;
  // Collective: waits for executions in flight and clears faults and signals; executables stay
  // valid.
  // Errors: N010, N017, G005.
  [[nodiscard]] virtual Checked<Ok> reset() = 0;
  [[nodiscard]] virtual GroupCounts counts() const = 0;
  // Memory of this rank that peers can access, for tensors: launches use these in place. The last
  // pointer, on any thread, returns it. Errors: I311 too many bytes, or none.
  [[nodiscard]] virtual Checked<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) = 0;
};

// What a rank joins a group with.
struct GroupRequest {
  std::shared_ptr<transport::Exchange> exchange;  // its rank is this rank
  std::int64_t heap_bytes = 0;                    // allocated at once; plans may add more
  std::int64_t tensor_bytes = 0;                  // for `allocate`: the largest request counts
  std::int64_t result_bytes = 0;                  // for `take_results`, on GPUs: likewise
  std::chrono::milliseconds wait_limit{60'000};   // of each wait for a rank in an execution
  bool uses_libraries = true;                     // on CPU ranks: for GEMMs
  // The rank's thread calls it before a kernel for its GPU is compiled.
  std::function<void(std::string_view kernel)> compiling = {};
  // On CPU ranks: a launch that waits for other ranks calls it from time to time; must not throw.
  // False abandons the execution.
  std::function<bool()> waiting = {};
};

}  // namespace harpe
