#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "exec/cpu/launch_steps.h"
#include "exec/cpu/prepare_steps.h"
#include "exec/cpu/signals.h"
#include "exec/executor.h"
#include "plan/plan.h"

namespace harpe::cpu {

// The interface to other processes while this one runs its part of a plan: signals, and puts that
// are still in flight. Calls may come from any thread.
class Outside {
 public:
  Outside() = default;
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
  virtual ~Outside() = default;

  // Reads, with acquire, a signal that other processes of this host, or the network, set here.
  [[nodiscard]] virtual std::int64_t read(std::int32_t flag) const = 0;
  virtual void raise(const Outgoing& flag, std::int64_t epoch) = 0;
  // This process runs the step now: its waits are over.
  virtual void begin(StepPlace) {}
  // Hands a far put to the network, with these signals behind it. False if the network has failed
  // for good; then nothing follows.
  [[nodiscard]] virtual bool post(TaskId task, const std::vector<Outgoing>& behind,
                                  std::int64_t epoch) = 0;
};

// The steps of a launch plan, or this process's part of them, as a marked graph: which have run,
// and the values of their signals. Queues of other processes count as finished from the start.
// Marking creates no threads: a runner calls `is_ready` and `step`, for each queue from one thread
// at a time.
class Marking {
 public:
  using Wake = std::function<void(std::int32_t queue)>;

  // `work`: as LaunchSteps::queues; empty for steps of other processes and for far puts. `outside`
  // must outlive this; null without other processes.
  Marking(const Plan& plan, LaunchSteps steps, StepWork work, std::optional<TaskId> drop_signal_of,
          const processes::Partition& partition, Outside* outside = nullptr);

  // Number of queues, empty ones included.
  [[nodiscard]] std::int32_t queues() const { return static_cast<std::int32_t>(queues_.size()); }

  // Resets to the initial state; abandons what was in flight. Requires: the signals of others are
  // cleared too.
  void clear();
  // Opens the next `count` executions. Requires: none is running.
  void begin(std::int64_t count, bool trace);
  [[nodiscard]] std::int64_t count_steps() const;  // of these executions, by this process's queues
  [[nodiscard]] bool is_finished(std::int32_t queue) const;
  // The first task of the launch whose step is next. Requires: the queue is not finished.
  [[nodiscard]] TaskId head(std::int32_t queue) const;
  [[nodiscard]] bool has_begun(std::int32_t queue) const;  // the launch of the next step has begun
  // Whether the launch whose step is next does the task. Requires: the queue is not finished.
  [[nodiscard]] bool is_at(std::int32_t queue, TaskId task) const;
  [[nodiscard]] std::int64_t epoch(std::int32_t queue) const;

  // True once nothing hinders the queue's next step. It stays true until that step runs.
  [[nodiscard]] bool is_ready(std::int32_t queue);
  // Runs the queue's next step and calls `wake` for every queue that its signals may have made
  // ready. Requires: is_ready.
  void step(std::int32_t queue, const Wake& wake);

  // The task has ended; of a far put, its data of this execution is in place. Raises the signals
  // that wait for this and that the network has not raised.
  void complete(TaskId task, std::int64_t epoch, const Wake& wake);
  [[nodiscard]] const ProcessSignals& signals() const { return signals_; }

  // For the executions opened last. Requires: all queues finished.
  [[nodiscard]] std::vector<std::chrono::nanoseconds> durations() const;
  [[nodiscard]] const std::vector<TraceEvent>& trace() const { return trace_; }

  // For the report of a run that stopped. Requires: no runner is active.
  struct Hindrance {
    const ProcessSignal* signal = nullptr;
    std::int64_t epoch = 0;  // the execution that the awaited value stands for
    std::int64_t observed = 0;
  };
  [[nodiscard]] std::optional<Hindrance> hindrance(std::int32_t queue) const;
  // Whether the queue's steps are this process's; the progress of other processes is unknown.
  [[nodiscard]] bool is_own(std::int32_t queue) const { return state_of(queue).is_own; }
  // Whether the step has ended in that execution. False for steps of other processes.
  [[nodiscard]] bool has_run(StepPlace step, std::int64_t epoch) const;
  [[nodiscard]] launch::LaunchId launch_of(TaskId task) const {
    return step_at(end_of(task)).launch;
  }
  // The step with which the task ends.
  [[nodiscard]] StepPlace end_of(TaskId task) const { return steps_.ends[task.index()]; }

 private:
  struct Queue {
    bool is_own = false;
    std::size_t position = 0;   // of the next step
    std::int64_t epoch = 1;     // its execution
    std::size_t satisfied = 0;  // waits of this step that are known to be over
  };

  void raise(const SignalRaise& raise, std::int64_t epoch, const Wake& wake);
  void raise_all(StepPlace place, std::int64_t epoch, const Wake& wake);
  [[nodiscard]] bool run(std::int32_t queue);
  void finish(std::int32_t queue, const Wake& wake);
  void note_end(std::int64_t epoch);
  [[nodiscard]] Queue& state_of(std::int32_t queue) {
    return queues_[static_cast<std::size_t>(queue)];
  }
  [[nodiscard]] const Queue& state_of(std::int32_t queue) const {
    return queues_[static_cast<std::size_t>(queue)];
  }
  [[nodiscard]] StepPlace place_of(std::int32_t queue) const {
    return {.queue = queue, .position = static_cast<std::int32_t>(state_of(queue).position)};
  }
  [[nodiscard]] const Step& step_at(StepPlace place) const {
    return steps_
        .queues[static_cast<std::size_t>(place.queue)][static_cast<std::size_t>(place.position)];
  }
  [[nodiscard]] const StepSignals& signals_at(StepPlace place) const {
    return signals_
        .queues[static_cast<std::size_t>(place.queue)][static_cast<std::size_t>(place.position)];
  }
  [[nodiscard]] std::int64_t value_of(const ProcessSignal& signal) const;
  [[nodiscard]] std::int64_t now() const;
  [[nodiscard]] const ProcessSignal& signal_at(std::int32_t number) const {
    return signals_.signals[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] bool is_raised(const ProcessSignal& signal, std::int64_t epoch) const;

  const Plan& plan_;
  LaunchSteps steps_;
  StepWork work_;
  std::optional<TaskId> drop_signal_of_;
  processes::Partition partition_;
  Outside* outside_;
  std::vector<Queue> queues_;
  ProcessSignals signals_;
  std::vector<bool> is_far_;                             // per task: a put that the network makes
  std::unique_ptr<std::atomic<std::int64_t>[]> values_;  // of the signals raised in this process

  std::int64_t first_epoch_ = 1;
  std::int64_t last_epoch_ = 0;
  bool traces_ = false;
  std::chrono::steady_clock::time_point start_;
  std::vector<TraceEvent> trace_;
  std::vector<std::atomic<std::int64_t>> ends_;  // per execution: when its last Exit ended
};

}  // namespace harpe::cpu
