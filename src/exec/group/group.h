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

// Ranks that programs have, each in a thread or a process of its own: they join a group, make
// executables of plans, and launch those on tensors of their own.

// Why there is no result: the arguments of a launch, plans that are not the same on all ranks, or
// what happened to this execution (CPU ranks) or an earlier one (GPUs).
struct ExecutionFault {
  std::string plan;  // whose execution it was: "ag_gemm on tp=2"
  FaultReport report;
};
using LaunchFailure = std::variant<Diag, ExecutionFault>;
// Of a plan's execution.
[[nodiscard]] LaunchFailure make_failure(const Plan& plan, FaultReport report);

struct ExecutableCounts {
  std::int64_t launches = 0;
  std::int64_t copied_bytes = 0;  // between tensors and the group's memory, of all launches
};

// One rank's part of a plan. It keeps its group's memory alive; ending one meets nobody.
class RankExecutable {
 public:
  RankExecutable() = default;
  RankExecutable(const RankExecutable&) = delete;
  RankExecutable& operator=(const RankExecutable&) = delete;
  virtual ~RankExecutable() = default;

  // Inputs, then outputs.
  [[nodiscard]] virtual const std::vector<LocalHome>& homes() const = 0;

  // One execution, of all ranks together: they launch executables of a group in the same order.
  // `tensors` are of the homes, in their order, with their types and shapes; they stay until it is
  // over. On GPUs it is ordered in `stream` (a CUstream of the rank's GPU) behind what that holds,
  // and the host waits for nothing; of a stream that is being captured it becomes a part of that
  // graph, which the executable outlives; CPU ranks compute it now, on the calling thread.
  // Errors: I311 strides that are not supported, or ranks that launch different plans, or on GPUs
  // with tensors at different places of the group's memory; G005. What happens to an execution ends
  // all executions of the group until it is reset.
  [[nodiscard]] virtual Result<Ok, LaunchFailure> launch(std::span<const TensorView> tensors,
                                                         void* stream) = 0;
  [[nodiscard]] virtual ExecutableCounts counts() const = 0;

  // Memory for those outputs of the next launch, in `stream`, that other ranks write, by home; null
  // for others and where there is no room, which on GPUs is so on all ranks. All ranks call it in
  // the same order, or none. It is given back with the last pointer, on any thread, for work that
  // is ordered behind that of the stream. Errors: what ended the group's executions.
  [[nodiscard]] virtual Result<std::vector<std::shared_ptr<std::byte>>, LaunchFailure> take_results(
      void* stream) = 0;
};

struct GroupCounts {
  std::int64_t heap_bytes =
      0;  // that peers can reach: arenas of plans, which share it, and signals
  std::int64_t tensor_bytes = 0;  // of them, that `allocate` and `take_results` gave
  std::int64_t executables = 0;
};

// What the executables of one rank share: memory that peers reach, which executables use in turn,
// and who the peers are. Calls of one group come from one thread at a time. Collective calls are
// made by all ranks, in the same order.
class RankGroup {
 public:
  RankGroup() = default;
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;
  virtual ~RankGroup() = default;

  // Collective. Requires: a verified plan. Errors: I311 a plan of other ranks; N015 ranks have
  // different plans; N010, N017 other ranks; X0xx, G0xx what this back end cannot do; X005, G073
  // memory.
  [[nodiscard]] virtual Checked<std::unique_ptr<RankExecutable>> make(const Plan& plan) = 0;
  // What ended the group's executions; none where all is well, as far as is known yet.
  [[nodiscard]] virtual std::optional<LaunchFailure> check() = 0;
  // Collective: waits for what is under way, and clears faults and signals; executables go on.
  // Errors: N010, N017, G005.
  [[nodiscard]] virtual Checked<Ok> reset() = 0;
  [[nodiscard]] virtual GroupCounts counts() const = 0;
  // Memory of this rank that peers reach, for tensors: launches use those where they are. It is
  // given back with the last pointer, on any thread. Errors: I311 too many bytes, or none.
  [[nodiscard]] virtual Checked<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) = 0;
};

// What ranks join with.
struct GroupRequest {
  std::shared_ptr<transport::Exchange> exchange;  // its rank is this rank
  std::int64_t heap_bytes = 0;                    // taken at once; more is taken as plans need it
  std::int64_t tensor_bytes = 0;                  // for `allocate`: the most of all ranks
  std::int64_t result_bytes = 0;                  // for `take_results`, on GPUs: likewise
  std::chrono::milliseconds wait_limit{60'000};   // of a wait for another rank in an execution
  bool uses_libraries = true;                     // on CPU ranks: for products of matrices
  // Called by the rank's thread before a kernel for its GPU is compiled.
  std::function<void(std::string_view kernel)> compiling = {};
  // On CPU ranks: called now and then by a launch that waits for other ranks; must not throw. False
  // gives the execution up.
  std::function<bool()> waiting = {};
};

}  // namespace harpe
