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

// What leaves this process while it runs its part of a plan, and what the network still has of it.
// Calls may come from any thread.
class Outside {
 public:
  Outside() = default;
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
  virtual ~Outside() = default;

  // Signals that other processes of this host, or the network, set here.
  [[nodiscard]] virtual std::int64_t read(std::int32_t flag) const = 0;
  virtual void raise(const Outgoing& flag, std::int64_t epoch) = 0;
  // This process runs the step now: what it waited for is over.
  virtual void begin(StepPlace) {}
  // Hands a far put to the network, and behind it these signals. False where that failed for good:
  // then nothing follows.
  [[nodiscard]] virtual bool post(TaskId task, const std::vector<Outgoing>& behind,
                                  std::int64_t epoch) = 0;
};

// A launch plan's steps, or this process's part of them, as a marked graph: which have run, and
// what their signals have raised. Queues of other processes are finished from the start. Knows
// nothing of threads: a runner decides who calls `is_ready` and `step` of a queue, one caller at a
// time.
class Marking {
 public:
  using Wake = std::function<void(std::int32_t queue)>;

  // `work` as LaunchSteps::queues; of other processes' steps and of far puts there is none. Without
  // `outside` there are no other processes; it outlives this.
  Marking(const Plan& plan, LaunchSteps steps, StepWork work, std::optional<TaskId> drop_signal_of,
          const processes::Partition& partition, Outside* outside = nullptr);

  // Queues, empty ones included.
  [[nodiscard]] std::int32_t queues() const { return static_cast<std::int32_t>(queues_.size()); }

  // As made: whatever was under way is given up. Requires: signals of others are clear too.
  void clear();
  // Opens the next `count` executions. Requires: none is under way.
  void begin(std::int64_t count, bool trace);
  [[nodiscard]] std::int64_t count_steps() const;  // of these executions, by own queues
  [[nodiscard]] bool is_finished(std::int32_t queue) const;
  // The first task of the launch whose step is next. Requires: the queue is not finished.
  [[nodiscard]] TaskId head(std::int32_t queue) const;
  [[nodiscard]] bool has_begun(std::int32_t queue) const;  // that launch is under way
  // Whether the launch whose step is next does the task. Requires: the queue is not finished.
  [[nodiscard]] bool is_at(std::int32_t queue, TaskId task) const;
  [[nodiscard]] std::int64_t epoch(std::int32_t queue) const;

  // True when nothing hinders the queue's next step. Once true it stays true until the step.
  [[nodiscard]] bool is_ready(std::int32_t queue);
  // Runs the queue's next step and calls `wake` for every queue that its signals may have made
  // ready. Requires: is_ready.
  void step(std::int32_t queue, const Wake& wake);

  // The task is over; of a far put, its data of this execution is in place. Raises what waits for
  // that and no network has raised.
  void complete(TaskId task, std::int64_t epoch, const Wake& wake);
  [[nodiscard]] const ProcessSignals& signals() const { return signals_; }

  // Of the executions opened last. Requires: all queues finished.
  [[nodiscard]] std::vector<std::chrono::nanoseconds> durations() const;
  [[nodiscard]] const std::vector<TraceEvent>& trace() const { return trace_; }

  // For the report of a run that stopped. Requires: no runner is at work.
  struct Hindrance {
    const ProcessSignal* signal = nullptr;
    std::int64_t epoch = 0;  // the execution that the signal stands for
    std::int64_t observed = 0;
  };
  [[nodiscard]] std::optional<Hindrance> hindrance(std::int32_t queue) const;
  // Its steps are this process's; how far another's are is not known.
  [[nodiscard]] bool is_own(std::int32_t queue) const { return state_of(queue).is_own; }
  // The step is over in the given execution. False of another process's.
  [[nodiscard]] bool has_run(StepPlace step, std::int64_t epoch) const;
  [[nodiscard]] launch::LaunchId launch_of(TaskId task) const {
    return step_at(end_of(task)).launch;
  }
  // The step behind which the task is over.
  [[nodiscard]] StepPlace end_of(TaskId task) const { return steps_.ends[task.index()]; }

 private:
  struct Queue {
    bool is_own = false;
    std::size_t position = 0;   // of the next step
    std::int64_t epoch = 1;     // its execution
    std::size_t satisfied = 0;  // waits of this step known to be over
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
  std::vector<bool> is_far_;                             // per task: a put that the network takes
  std::unique_ptr<std::atomic<std::int64_t>[]> values_;  // of the signals raised here

  std::int64_t first_epoch_ = 1;
  std::int64_t last_epoch_ = 0;
  bool traces_ = false;
  std::chrono::steady_clock::time_point start_;
  std::vector<TraceEvent> trace_;
  std::vector<std::atomic<std::int64_t>> ends_;  // per execution: when its last Exit was over
};

}  // namespace harpe::cpu
