#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "exec/cuda/executor/network.h"
#include "exec/cuda/executor/rank_trace.h"
#include "exec/cuda/kernels/fixed_words.h"
#include "exec/cuda/kernels/prepared_launches.h"
#include "exec/cuda/runtime/graph.h"
#include "exec/cuda/signals/peers.h"
#include "exec/cuda/signals/signal_kernels.h"
#include "exec/cuda/target/signal_pages.h"
#include "exec/cuda/target/task_specs.h"
#include "plan/launch_plan.h"

namespace harpe::cuda {

// A launch of the launch plan, ready to be ordered.
struct PreparedLaunch {
  launch::LaunchId id;
  Launches work;           // of one that bounds its epoch: with what it does of Entry and Exit
  Launches traced_work{};  // the same as part of a trace, where there is one
  FixedWords fixed{};
};

// A signal of a rank of this process, where it lies.
[[nodiscard]] device::FlagWait wait_for(const Peers& peers, const Network* network,
                                        const SignalPages& pages, launch::SignalId signal);
// What raises a signal that is not posted.
[[nodiscard]] device::RaiseTarget target_of(const Peers& peers, const SignalPages& pages,
                                            const launch::Raise& raise);

// One rank's launches on its GPU: a stream for every queue, captured into one graph that is
// replayed as a whole. Entry and Exit stand in the stream of the first kernels, so that these begin
// while the Entry ends. An execution that is one kernel needs no graph, but for a trace. Nothing is
// allocated, and the host waits for nothing, between replays.
class RankProgram {
 public:
  struct Parts {
    const Plan* plan = nullptr;  // these outlive the program
    const launch::LaunchPlan* launch_plan = nullptr;
    const SignalPages* pages = nullptr;
    const Peers* peers = nullptr;
    const Network* network = nullptr;  // none: nothing is posted
    SignalKernels kernels;
    std::vector<PreparedLaunch> launches;  // of the rank, in order
    // Where other plans use the arenas in between: what each execution sets to zero first. The host
    // then learns at the end of each whether the rank was poisoned.
    std::optional<Numbers> zero_first{};
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
  // The same, to be launched by others. Errors: G005.
  [[nodiscard]] Checked<CapturedGraph> capture_apart(std::chrono::nanoseconds limit) const {
    return capture_pass({.limit = limit});
  }
  // What was captured runs without the streams that it was captured from. A GPU has few queues for
  // streams: work behind each other in one waits where it need not. Nothing is captured or replayed
  // here behind this.
  void free_streams();
  // Whether an execution is one kernel, which can follow the one before while that ends: it is
  // ordered by itself, also where others capture.
  [[nodiscard]] bool is_one_kernel() const;
  // Requires: captured; the GPU is current for the calling thread.
  [[nodiscard]] Result<Ok, CudaError> replay(const Stream& stream) const;
  // The same in its own stream. Requires: there is a trace.
  [[nodiscard]] Result<Ok, CudaError> replay_traced() const { return traced_->launch(origin()); }

  // Replays under way wait for nothing any more: another rank has failed.
  [[nodiscard]] Result<Ok, CudaError> give_up() const;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const Device& device() const { return parts_.peers->device(rank_); }
  [[nodiscard]] const Stream& origin() const { return streams_.at(origin_); }
  [[nodiscard]] const std::vector<PreparedLaunch>& launches() const { return parts_.launches; }
  // Requires: there is one.
  [[nodiscard]] const RankTrace& trace() const { return *parts_.trace; }

 private:
  RankProgram(int rank, Parts parts, Stream aside)
      : rank_(rank), parts_(std::move(parts)), aside_(std::move(aside)) {}

  using Raises = std::vector<launch::Raise>;
  [[nodiscard]] const launch::Launch& launch_of(launch::LaunchId id) const {
    return parts_.launch_plan->launches[id.index()];
  }
  // A graph as it is captured.
  struct Pass {
    std::chrono::nanoseconds limit{0};  // of waits
    const RankTrace* trace = nullptr;   // none: nothing is stamped
  };
  // A launch in a pass.
  struct Place {
    std::size_t index = 0;  // into Parts::launches
    const launch::Launch* launch = nullptr;
    const Stream* stream = nullptr;
    device::WaitContext context{};
    const RankTrace* trace = nullptr;
  };
  [[nodiscard]] Checked<CapturedGraph> capture_pass(const Pass& pass) const;
  [[nodiscard]] Checked<Graph> capture_graph(const Pass& pass) const;
  [[nodiscard]] Result<Ok, CudaError> order_all(const Pass& pass) const;
  [[nodiscard]] Result<Ok, CudaError> order_zeros() const;
  [[nodiscard]] Result<Ok, CudaError> join_queues() const;
  [[nodiscard]] Result<Ok, CudaError> order(std::size_t index, const Pass& pass) const;
  [[nodiscard]] bool is_boundary(const launch::Launch& launch) const;
  // With what follows a kernel that only begins the epoch.
  [[nodiscard]] Result<Ok, CudaError> order_bounding(std::size_t index, const Pass& pass) const;
  [[nodiscard]] bool is_opened() const;  // by a kernel, and ended by the Exit
  [[nodiscard]] Place place_of(std::size_t index, const Pass& pass) const;
  // What tests have a rank do before a launch.
  [[nodiscard]] Result<Ok, CudaError> order_disturbance(const Place& place) const;
  // Whose stream boundaries stand in: that of the first kernels, where the Entry's has no others.
  [[nodiscard]] QueueId queue_of_boundaries() const;
  // Whose stream the launch is ordered in.
  [[nodiscard]] QueueId queue_of(const launch::Launch& launch) const;
  [[nodiscard]] bool is_behind_own_kernels(const Place& place) const;
  // Whether the last work of the launch's stream before it is a kernel, and it waits for nothing of
  // other streams.
  [[nodiscard]] bool is_behind_kernel(const Place& place) const;
  [[nodiscard]] bool may_wait(const launch::Launch& launch) const;
  [[nodiscard]] Result<Ok, CudaError> order_waits(const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> order_work(const Place& place) const;
  // A boundary waits and raises in one kernel, but where stamps come in between.
  [[nodiscard]] bool is_one_turn(const Place& place) const;
  [[nodiscard]] bool has_signals() const;
  [[nodiscard]] Result<Ok, CudaError> order_turn(const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> order_kernels(const Place& place) const;
  [[nodiscard]] static Result<Ok, CudaError> stamp(const Place& place, Moment moment);
  // Of those that are not posted.
  [[nodiscard]] std::vector<device::RaiseTarget> targets_of(const Raises& raises) const;
  [[nodiscard]] std::vector<device::SignalWait> waits_on(
      const std::vector<launch::SignalId>& signals) const;
  // Without those to other ranks, where a task's signals are to be lost.
  [[nodiscard]] Raises kept(const launch::Launch& launch, Raises raises) const;
  [[nodiscard]] Result<Ok, CudaError> raise_by_engine(const Raises& raises,
                                                      const Stream& stream) const;
  // `is_behind`: right behind kernels of the launch.
  [[nodiscard]] Result<Ok, CudaError> raise(const Raises& raises, const Place& place,
                                            bool is_behind = false) const;
  // Those of the raises that are posted.
  [[nodiscard]] Result<Ok, CudaError> post(const Raises& raises, const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> await(const std::vector<launch::SignalId>& signals,
                                            const Place& place) const;

  int rank_;
  Parts parts_;
  Stream aside_;                         // of no queue
  QueueId origin_;                       // of boundaries
  std::optional<std::size_t> bounding_;  // which of the launches bounds the epoch
  std::map<QueueId, Stream> streams_;
  std::map<QueueId, Event> ends_;            // of streams
  std::map<launch::LaunchId, Event> over_;   // of launches that others are after
  std::map<launch::LaunchId, Event> begun_;  // of launches that others begin behind
  std::optional<Graph> graph_;               // none where an execution is one kernel
  std::optional<Graph> traced_;
};

}  // namespace harpe::cuda
