#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "exec/cuda/actions/launches.h"
#include "exec/cuda/executor/network.h"
#include "exec/cuda/executor/rank_trace.h"
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
  Launches traced_work{};  // the same as part of a trace, where there is one
  bool lands = false;      // its task is a put of another rank's, to this one
};

// A signal of a rank of this process, where it lies.
[[nodiscard]] device::FlagWait wait_for(const Peers& peers, const Network* network, int rank,
                                        std::int32_t index, const PageSignal& signal);

// One rank's part of a plan on its GPU: a stream for every queue, captured into one graph that is
// replayed as a whole. Nothing is allocated, and the host waits for nothing, between replays.
class RankProgram {
 public:
  struct Parts {
    const Plan* plan = nullptr;  // these outlive the program
    const Wiring* wiring = nullptr;
    const Peers* peers = nullptr;
    const Network* network = nullptr;  // none: nothing is posted
    SignalKernels kernels;
    std::vector<Unit> units;                 // of the rank, in order
    std::optional<RankTrace> trace{};        // where executions are to be traced
    std::optional<TaskId> drop_signal_of{};  // for tests, like the next
    std::optional<TaskId> stray_at{};
    std::optional<std::uint32_t> delay_seed{};
  };

  // Errors: G005.
  [[nodiscard]] static Checked<RankProgram> make(int rank, Parts parts);

  // Has libraries make the connections that they make at their first calls, which a capture must
  // not see. Requires: the GPU is current; what tasks write may be overwritten. Errors: G005.
  [[nodiscard]] Checked<Ok> warm_up() const;
  // Prepares replays whose waits take at most `limit`; with a trace also those that leave their
  // times there, which take longer. Errors: G005.
  [[nodiscard]] Checked<Ok> capture(std::chrono::nanoseconds limit);
  // Requires: captured; the GPU is current for the calling thread.
  [[nodiscard]] Result<Ok, CudaError> replay() const { return graph_->launch(origin()); }
  // The same. Requires: there is a trace.
  [[nodiscard]] Result<Ok, CudaError> replay_traced() const { return traced_->launch(origin()); }

  // Replays under way wait for nothing any more: another rank has failed.
  [[nodiscard]] Result<Ok, CudaError> give_up() const;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const Device& device() const { return parts_.peers->device(rank_); }
  [[nodiscard]] const Stream& origin() const { return streams_.at(origin_); }
  [[nodiscard]] const std::vector<Unit>& units() const { return parts_.units; }
  // Requires: there is one.
  [[nodiscard]] const RankTrace& trace() const { return *parts_.trace; }
  [[nodiscard]] std::int64_t nodes() const { return graph_ ? graph_->nodes() : 0; }

 private:
  RankProgram(int rank, Parts parts, Stream aside)
      : rank_(rank), parts_(std::move(parts)), aside_(std::move(aside)) {}

  [[nodiscard]] const TaskWiring& wiring_of(TaskId task) const {
    return parts_.wiring->on(*parts_.plan, RankId(rank_), task);
  }
  [[nodiscard]] QueueId queue_of(TaskId task) const {
    return parts_.plan->tasks[task.index()].queue;
  }
  // A graph as it is captured.
  struct Pass {
    std::chrono::nanoseconds limit{0};  // of waits
    const RankTrace* trace = nullptr;   // none: nothing is stamped
  };
  // A unit's place in a pass.
  struct Place {
    std::size_t unit = 0;
    const Stream* stream = nullptr;
    device::WaitContext context{};
    const RankTrace* trace = nullptr;
  };
  [[nodiscard]] Checked<Graph> capture_pass(const Pass& pass) const;
  [[nodiscard]] Result<Ok, CudaError> order_all(const Pass& pass) const;
  [[nodiscard]] Result<Ok, CudaError> join_queues() const;
  [[nodiscard]] Result<Ok, CudaError> order(std::size_t unit, const Pass& pass) const;
  [[nodiscard]] bool is_entry(TaskId task) const {
    return parts_.plan->tasks[task.index()].kind == TaskKind::Entry;
  }
  [[nodiscard]] bool is_boundary(TaskId task) const {
    return is_entry(task) || parts_.plan->tasks[task.index()].kind == TaskKind::Exit;
  }
  [[nodiscard]] bool may_wait(const Unit& unit) const;
  [[nodiscard]] Result<Ok, CudaError> order_waits(const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> order_work(const Place& place) const;
  // A boundary waits and raises in one kernel, but where stamps come in between.
  [[nodiscard]] bool is_one_turn(const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> order_turn(const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> order_launches(const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> raise_all(const Place& place) const;
  [[nodiscard]] static Result<Ok, CudaError> stamp(const Place& place, Moment moment);
  // Of those that are not posted.
  [[nodiscard]] std::vector<device::RaiseTarget> targets_of(const std::vector<Raise>& raises) const;
  [[nodiscard]] std::vector<device::SignalWait> waits_on(
      const std::vector<std::int32_t>& signals) const;
  // Without those to other ranks, where the task's signals are to be lost.
  [[nodiscard]] std::vector<Raise> kept(TaskId task, std::vector<Raise> raises) const;
  [[nodiscard]] Result<Ok, CudaError> raise_by_engine(const std::vector<Raise>& raises,
                                                      const Stream& stream) const;
  [[nodiscard]] Result<Ok, CudaError> raise(const std::vector<Raise>& raises,
                                            const Place& place) const;
  // Those of the raises that are posted.
  [[nodiscard]] Result<Ok, CudaError> post(const std::vector<Raise>& raises,
                                           const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> await(const std::vector<std::int32_t>& signals,
                                            const device::WaitContext& context,
                                            const Stream& stream) const;

  int rank_;
  Parts parts_;
  Stream aside_;    // of no queue
  QueueId origin_;  // of the Entry
  std::map<QueueId, Stream> streams_;
  std::map<QueueId, Event> ends_;    // of streams
  std::map<TaskId, Event> events_;   // of tasks that others are after
  std::map<TaskId, Event> arrived_;  // of tasks whose waits others are behind: those are over
  std::optional<Graph> graph_;
  std::optional<Graph> traced_;
};

}  // namespace harpe::cuda
