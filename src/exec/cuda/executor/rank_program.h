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

// A launch of the launch plan, ready to be enqueued.
struct PreparedLaunch {
  launch::LaunchId id;
  Launches work;           // a kernel that bounds its epoch does its share of Entry and Exit
  Launches traced_work{};  // the same for traced executions, if there is a trace
  FixedWords fixed{};
};

// The wait for a signal of a rank of this process, at the signal's address.
[[nodiscard]] device::FlagWait wait_for(const Peers& peers, const Network* network,
                                        const SignalPages& pages, launch::SignalId signal);
// The raise of a signal that is not posted.
[[nodiscard]] device::RaiseTarget target_of(const Peers& peers, const SignalPages& pages,
                                            const launch::Raise& raise);

// One rank's launches on its GPU: a stream for every queue, captured into one graph that is
// replayed as a whole. Entry and Exit run in the stream of the first kernels, so that these start
// while the Entry ends. An execution that is one kernel needs no graph, except for a trace. Between
// replays nothing is allocated, and the host waits for nothing.
class RankProgram {
 public:
  struct Parts {
    const Plan* plan = nullptr;  // these must outlive the program
    const launch::LaunchPlan* launch_plan = nullptr;
    const SignalPages* pages = nullptr;
    const Peers* peers = nullptr;
    const Network* network = nullptr;  // null: nothing is posted
    SignalKernels kernels;
    std::vector<PreparedLaunch> launches;  // of the rank, in order
    // If other plans use the arenas between executions: memory that each execution zeroes first. At
    // the end of each, the host learns whether the rank was poisoned.
    std::optional<Numbers> zero_first{};
    std::optional<RankTrace> trace{};        // if executions are to be traced
    std::optional<TaskId> drop_signal_of{};  // for tests, like the next
    std::optional<TaskId> stray_at{};
    std::optional<std::uint32_t> delay_seed{};
  };

  // Errors: G005.
  [[nodiscard]] static Checked<RankProgram> make(int rank, Parts parts);

  // Makes libraries open the connections that they open on first use, which a capture must not
  // contain. Requires: the GPU is current; the tasks' outputs may be overwritten. Errors: G005.
  [[nodiscard]] Checked<Ok> warm_up() const;
  // Captures replays whose waits take at most `limit`; with a trace also replays that record their
  // times, which take longer. Errors: G005.
  [[nodiscard]] Checked<Ok> capture(std::chrono::nanoseconds limit);
  // The same, to be launched by the caller. Errors: G005.
  [[nodiscard]] Checked<CapturedGraph> capture_apart(std::chrono::nanoseconds limit) const {
    return capture_pass({.limit = limit});
  }
  // Frees the streams, which a captured graph does not need. A GPU has few hardware queues for
  // streams: streams that share one wait for each other needlessly. Nothing is captured or replayed
  // here afterwards.
  void free_streams();
  // Whether an execution is one kernel, which can overlap the end of the previous execution. It is
  // enqueued by itself, also during a caller's capture.
  [[nodiscard]] bool is_one_kernel() const;
  // Requires: captured; the GPU is current for the calling thread.
  [[nodiscard]] Result<Ok, CudaError> replay(const Stream& stream) const;
  // The same with the trace, in its own stream. Requires: there is a trace.
  [[nodiscard]] Result<Ok, CudaError> replay_traced() const { return traced_->launch(origin()); }

  // Ends all waits of replays in flight, because another rank has failed.
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
  // One capture of the launches.
  struct Pass {
    std::chrono::nanoseconds limit{0};  // of waits
    const RankTrace* trace = nullptr;   // null: no timestamps
  };
  // A launch within a pass.
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
  // Enqueues the kernel that bounds the epoch and the launches behind it.
  [[nodiscard]] Result<Ok, CudaError> order_bounding(std::size_t index, const Pass& pass) const;
  [[nodiscard]] Place place_of(std::size_t index, const Pass& pass) const;
  // What tests insert before a launch.
  [[nodiscard]] Result<Ok, CudaError> order_disturbance(const Place& place) const;
  // The queue of Entry and Exit: the Entry's own if other launches use it, else that of the first
  // kernels.
  [[nodiscard]] QueueId queue_of_boundaries() const;
  // The queue in whose stream the launch runs.
  [[nodiscard]] QueueId queue_of(const launch::Launch& launch) const;
  [[nodiscard]] bool is_behind_own_kernels(const Place& place) const;
  // Whether the launch is behind a kernel in its stream and waits for no other stream.
  [[nodiscard]] bool is_behind_kernel(const Place& place) const;
  [[nodiscard]] bool may_wait(const launch::Launch& launch) const;
  [[nodiscard]] Result<Ok, CudaError> order_waits(const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> order_work(const Place& place) const;
  // A boundary waits and raises in one kernel, unless timestamps come between.
  [[nodiscard]] bool is_one_turn(const Place& place) const;
  [[nodiscard]] bool has_signals() const;
  [[nodiscard]] Result<Ok, CudaError> order_turn(const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> order_kernels(const Place& place) const;
  [[nodiscard]] static Result<Ok, CudaError> stamp(const Place& place, Moment moment);
  // Of those raises that are not posted.
  [[nodiscard]] std::vector<device::RaiseTarget> targets_of(const Raises& raises) const;
  [[nodiscard]] std::vector<device::SignalWait> waits_on(
      const std::vector<launch::SignalId>& signals) const;
  // Without raises to other ranks, if tests drop a task's signals.
  [[nodiscard]] Raises kept(const launch::Launch& launch, Raises raises) const;
  [[nodiscard]] Result<Ok, CudaError> raise_by_engine(const Raises& raises,
                                                      const Stream& stream) const;
  // `is_behind`: directly behind kernels of the launch.
  [[nodiscard]] Result<Ok, CudaError> raise(const Raises& raises, const Place& place,
                                            bool is_behind = false) const;
  // Posts those of the raises that are posted.
  [[nodiscard]] Result<Ok, CudaError> post(const Raises& raises, const Place& place) const;
  [[nodiscard]] Result<Ok, CudaError> await(const std::vector<launch::SignalId>& signals,
                                            const Place& place) const;

  int rank_;
  Parts parts_;
  Stream aside_;                         // for no queue
  QueueId origin_;                       // of Entry and Exit
  std::optional<std::size_t> bounding_;  // index of the launch that bounds the epoch
  std::map<QueueId, Stream> streams_;
  std::map<QueueId, Event> ends_;            // at the end of each stream
  std::map<launch::LaunchId, Event> over_;   // of launches that others wait to end
  std::map<launch::LaunchId, Event> begun_;  // of launches that others wait to begin
  std::optional<Graph> graph_;               // none if an execution is one kernel
  std::optional<Graph> traced_;
};

}  // namespace harpe::cuda
