#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/cuda/executor/gpu_faults.h"
#include "exec/cuda/launch_environment.h"
#include "exec/cuda/socket_bootstrap.h"
#include "exec/executor.h"
#include "plan/plan.h"

namespace harpe::cuda {

// The processes that run a plan together, one for each rank: what they tell each other. Every call
// is made by all of them, in the same order.
class ProcessGroup {
 public:
  // Errors: G077 they do not come together; G078 they are not as many as the plan has ranks.
  [[nodiscard]] static Checked<ProcessGroup> meet(const Launch& launch, const Plan& plan);

  [[nodiscard]] int rank() const { return bootstrap_->rank(); }
  [[nodiscard]] int local_rank() const { return local_rank_; }
  [[nodiscard]] Bootstrap& bootstrap() { return *bootstrap_; }

  // Goes on once all could do what comes next. Errors: `failure`, where this rank could not; G079
  // another could not; G077.
  [[nodiscard]] Checked<Ok> agree(const std::optional<Diag>& failure);
  // Errors: G076, G077.
  [[nodiscard]] Checked<Ok> compare(const std::string& hash);
  // Waits for the others. Errors: G077.
  [[nodiscard]] Checked<Ok> wait_for_all();

  // While the result lives: `stop` once a rank is gone or has stopped, in another thread, perhaps
  // more than once. No other call meanwhile.
  [[nodiscard]] std::jthread watch(std::function<void()> stop);
  // The first rank that is gone, or did not answer in time.
  [[nodiscard]] std::optional<int> lost() const { return bootstrap_->lost(); }

  // Of every rank, once its replays are over; of a rank that answers no more, that. `own` is this
  // rank's, and where it is not fine, the others are told to stop.
  [[nodiscard]] std::vector<RankReport> exchange(const RankReport& own);
  // Each execution's time on the rank where it took longest.
  [[nodiscard]] Checked<std::vector<std::chrono::nanoseconds>> longest_of(
      std::vector<std::chrono::nanoseconds> times);
  // A traced execution's tasks, of all ranks. Requires: a plan of so many tasks.
  [[nodiscard]] Checked<std::vector<TraceEvent>> events_of_all(std::vector<TraceEvent> own,
                                                               std::size_t tasks);

 private:
  ProcessGroup(std::unique_ptr<SocketBootstrap> bootstrap, int local_rank)
      : bootstrap_(std::move(bootstrap)), local_rank_(local_rank) {}

  std::unique_ptr<SocketBootstrap> bootstrap_;
  int local_rank_;
};

// As bytes for another process, and back; a blob that is none counts as a rank that is lost.
[[nodiscard]] Blob pack(const RankReport& report);
[[nodiscard]] RankReport unpack(const Blob& blob);

}  // namespace harpe::cuda
