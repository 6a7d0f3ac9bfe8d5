#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "exec/actions/action.h"
#include "exec/executor.h"
#include "plan/plan.h"

namespace harpe::cpu {

// What a word of the flag pages is for.
enum class WordKind : std::uint8_t {
  Sync,     // a flag, stored by the sync's `from`
  Barrier,  // a counter of the barrier's `from` tasks
  Entry,    // a flag: the rank's Entry has run, so its lanes may begin the execution
  Arrival,  // a counter: members of a collective whose parts are ready
  Pulled,   // a counter: members of a collective that have taken what they need
};

// A monotone word. A flag holds the last execution (epoch) it was raised in; a counter has been
// incremented `members` times per execution. Waiting is `>=`, as on a device (commir.md 7.3, D18).
struct Word {
  WordKind kind = WordKind::Sync;
  std::int32_t index = 0;    // of the sync, barrier, rank or group
  std::int64_t members = 0;  // of a counter; 0: a flag
  std::vector<TaskId> producers;
  std::vector<std::int32_t> waiters;  // lanes whose heads may wait for it
};

// The plan as a marked graph: which tasks have run, and what their signals have raised. Knows
// nothing of threads: a runner decides who calls `is_ready` and `step` of a lane, one caller at a
// time.
class Marking {
 public:
  using Wake = std::function<void(std::int32_t lane)>;

  Marking(const Plan& plan, std::vector<actions::TaskWork> work,
          std::optional<TaskId> drop_signal_of);

  // Lanes, empty ones included.
  [[nodiscard]] std::int32_t lanes() const { return static_cast<std::int32_t>(lanes_.size()); }

  // Opens the next `count` executions. Requires: none is under way.
  void begin(std::int64_t count, bool trace);
  [[nodiscard]] bool is_finished(std::int32_t lane) const;
  // Requires: the lane is not finished.
  [[nodiscard]] TaskId head(std::int32_t lane) const;
  [[nodiscard]] bool has_begun(std::int32_t lane) const;  // the head is a collective under way
  [[nodiscard]] std::int64_t epoch(std::int32_t lane) const;

  // True when nothing hinders the lane's next step. Once true it stays true until the step.
  [[nodiscard]] bool is_ready(std::int32_t lane);
  // Runs the lane's next step and calls `wake` for every lane that its signals may have made ready.
  // Requires: is_ready. A collective takes three steps: announce, pull, leave; any other task one.
  void step(std::int32_t lane, const Wake& wake);

  // Of the executions opened last. Requires: all lanes finished.
  [[nodiscard]] std::vector<std::chrono::nanoseconds> durations() const;
  [[nodiscard]] const std::vector<TraceEvent>& trace() const { return trace_; }

  // For the report of a run that stopped. Requires: no runner is at work.
  struct Hindrance {
    const Word* word = nullptr;
    std::int64_t expected = 0;
    std::int64_t observed = 0;
  };
  [[nodiscard]] std::optional<Hindrance> hindrance(std::int32_t lane) const;
  // The task has completed in the given execution.
  [[nodiscard]] bool has_run(TaskId task, std::int64_t epoch) const;

 private:
  // A wait of a task: the word must have reached epoch * scale.
  struct Wait {
    std::int32_t word;
    std::int64_t scale;
  };
  struct Lane {
    std::vector<TaskId> tasks;
    std::size_t position = 0;   // of the head
    std::int64_t epoch = 1;     // the head's execution
    int stage = 0;              // of a collective: 0 to announce, 1 to pull, 2 to leave
    std::size_t satisfied = 0;  // waits of this stage known to be over
  };

  std::int32_t add_word(Word word);
  void raise(std::int32_t word, std::int64_t epoch, const Wake& wake);
  void finish(Lane& lane, TaskId task, const Wake& wake);
  void link_lanes();
  void link_entries();
  void link_syncs();
  void link_collectives();
  [[nodiscard]] std::int64_t now() const;
  [[nodiscard]] std::optional<Wait> wait_of(const Lane& lane, std::size_t i) const;
  [[nodiscard]] bool is_over(const Wait& wait, std::int64_t epoch) const;

  const Plan& plan_;
  std::vector<actions::TaskWork> work_;
  std::optional<TaskId> drop_signal_of_;
  std::vector<Lane> lanes_;
  std::vector<std::size_t> positions_;  // per task: its place in its lane
  std::vector<Word> words_;
  std::unique_ptr<std::atomic<std::int64_t>[]> values_;  // of the words
  std::vector<std::vector<Wait>> waits_;  // per task: before it runs (a collective: announces)
  std::vector<std::vector<std::int32_t>> signals_;  // per task: words it raises when it is over
  std::vector<std::int32_t> arrivals_;              // per task: a collective's words, else -1
  std::vector<std::int32_t> pulled_;

  std::int64_t first_epoch_ = 1;
  std::int64_t last_epoch_ = 0;
  bool traces_ = false;
  std::chrono::steady_clock::time_point start_;
  std::vector<TraceEvent> trace_;
  std::vector<std::atomic<std::int64_t>> ends_;  // per execution: when its last Exit was over
};

}  // namespace harpe::cpu
