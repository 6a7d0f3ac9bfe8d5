#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "exec/cuda/executor/gpu_faults.h"
#include "exec/cuda/executor/rank_program.h"

namespace harpe::cuda {

// One rank's executions, by a thread of its own: a full queue of one rank holds up no other.
struct RankRun {
  std::vector<Event> ends;  // the start, then the end of each execution
  bool is_traced = false;
  std::optional<Graph> chain = std::nullopt;  // of several executions, which is one then
  RankEnd end;
  bool was_stopped = false;  // before all were ordered

  // The rank's programs in turns, in the first one's stream, until all are over, or `stop` is set
  // and what was ordered before is over.
  void go(std::span<const RankProgram* const> programs, const std::atomic<bool>& stop);

 private:
  [[nodiscard]] Result<Ok, CudaError> replay_all(std::span<const RankProgram* const> programs,
                                                 const std::atomic<bool>& stop);
  [[nodiscard]] Result<Ok, CudaError> replay(const RankProgram& program,
                                             const Stream& stream) const;
};

// How many executions of so many milliseconds are ordered before the host waits for earlier ones;
// as many again are under way meanwhile.
[[nodiscard]] std::size_t window_of(double milliseconds);

}  // namespace harpe::cuda
