#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "exec/cuda/actions/launches.h"
#include "exec/cuda/executor/units.h"
#include "exec/cuda/executor/wiring.h"
#include "exec/cuda/graph.h"
#include "exec/cuda/peers.h"
#include "exec/cuda/signal_kernels.h"

namespace harpe::cuda {

// Tasks that run as one (executor/units.h), ready to be ordered.
struct Unit {
  std::vector<TaskId> tasks;
  Launches work;
  bool waits_inside = false;
  RaisedBy raised_by = RaisedBy::Kernel;
  std::vector<TaskId> silent = {};  // as of UnitSpec, like the next
  std::vector<TaskId> behind = {};
  std::vector<std::int32_t> awaited = {};
};

// One rank's part of a plan on its GPU: a stream for every lane, captured into one graph that is
// replayed as a whole. Nothing is allocated, and the host waits for nothing, between replays.
class RankProgram {
 public:
  struct Parts {
    const Plan* plan = nullptr;  // these outlive the program
    const Wiring* wiring = nullptr;
    const Peers* peers = nullptr;
    SignalKernels kernels;
    std::vector<Unit> units;                 // of the rank, in order
    std::optional<TaskId> drop_signal_of{};  // for tests
    std::optional<std::uint32_t> delay_seed{};
  };

  // Errors: G005.
  [[nodiscard]] static Checked<RankProgram> make(int rank, Parts parts);

  // Prepares replays whose waits take at most `limit`. Errors: G005.
  [[nodiscard]] Checked<Ok> capture(std::chrono::nanoseconds limit);
  // Requires: captured; the GPU is current for the calling thread.
  [[nodiscard]] Result<Ok, CudaError> replay() const { return graph_->launch(origin()); }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const Device& device() const { return parts_.peers->device(rank_); }
  [[nodiscard]] const Stream& origin() const { return streams_.at(origin_); }
  [[nodiscard]] std::int64_t nodes() const { return graph_ ? graph_->nodes() : 0; }

 private:
  RankProgram(int rank, Parts parts) : rank_(rank), parts_(std::move(parts)) {}

  [[nodiscard]] const TaskWiring& wiring_of(TaskId task) const {
    return parts_.wiring->tasks[task.index()];
  }
  [[nodiscard]] LaneId lane_of(TaskId task) const { return parts_.plan->tasks[task.index()].lane; }
  [[nodiscard]] const std::vector<TaskId>& sequence() const {
    return parts_.wiring->sequence[static_cast<std::size_t>(rank_)];
  }
  [[nodiscard]] Result<Ok, CudaError> order_all(std::chrono::nanoseconds limit) const;
  [[nodiscard]] Result<Ok, CudaError> order(const Unit& unit, std::chrono::nanoseconds limit) const;
  [[nodiscard]] Result<Ok, CudaError> order_work(const Unit& unit,
                                                 const device::WaitContext& context,
                                                 const Stream& stream) const;
  [[nodiscard]] Result<Ok, CudaError> raise_all(const Unit& unit, const Stream& stream) const;
  // Without those to other ranks, where the task's signals are to be lost.
  [[nodiscard]] std::vector<Raise> kept(TaskId task, std::vector<Raise> raises) const;
  [[nodiscard]] Result<Ok, CudaError> raise_by_engine(const std::vector<Raise>& raises,
                                                      const Stream& stream) const;
  [[nodiscard]] Result<Ok, CudaError> raise(const std::vector<Raise>& raises,
                                            const Stream& stream) const;
  [[nodiscard]] Result<Ok, CudaError> await(const std::vector<std::int32_t>& words,
                                            const device::WaitContext& context,
                                            const Stream& stream) const;

  int rank_;
  Parts parts_;
  LaneId origin_;  // of the Entry
  std::map<LaneId, Stream> streams_;
  std::map<TaskId, Event> events_;   // of tasks that others are after, and of every lane's last
  std::map<TaskId, Event> arrived_;  // of tasks whose waits others are behind: those are over
  std::map<LaneId, TaskId> lasts_;
  std::optional<Graph> graph_;
};

}  // namespace harpe::cuda
