#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "exec/cuda/executor/gpu_faults.h"
#include "exec/cuda/executor/rank_program.h"
#include "exec/timestamps.h"

namespace harpe::cuda {

// One rank's executions, enqueued by its own thread: a full queue of one rank delays no other.
struct RankRun {
  Timestamps stamps{};
  std::vector<Event> ends;  // by timestamp
  bool is_traced = false;
  std::optional<Graph> chain = std::nullopt;  // several executions as one graph, counted as one
  RankEnd end;
  bool was_stopped = false;  // before all were enqueued

  // Runs the rank's programs in turn, in the first one's stream, until all executions have ended,
  // or `stop` is set and the executions enqueued so far have ended.
  void go(std::span<const RankProgram* const> programs, const std::atomic<bool>& stop);

 private:
  [[nodiscard]] Result<Ok, CudaError> replay_all(std::span<const RankProgram* const> programs,
                                                 const std::atomic<bool>& stop);
  [[nodiscard]] Result<Ok, CudaError> replay(const RankProgram& program,
                                             const Stream& stream) const;
};

// How many executions of this duration are enqueued before the host waits for earlier ones; as many
// again are in flight during that wait.
[[nodiscard]] std::size_t window_of(double milliseconds);

}  // namespace harpe::cuda
