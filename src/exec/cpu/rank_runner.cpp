#include "exec/cpu/rank_runner.h"

#include <thread>

namespace harpe::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Polling of a rank that waits: frequent at first, rare later.
class Patience {
 public:
  Patience(const GroupBoard& board, std::chrono::milliseconds limit)
      : board_(board), limit_(limit) {}

  void restart() { looks_ = 0; }

  // Rests. False: waiting is hopeless.
  bool wait(RunOutcome& outcome, const std::function<bool()>& is_hopeless) {
    if (looks_ == 0) since_ = Clock::now();
    if (++looks_ < kLooks) {
      std::this_thread::yield();
      return true;
    }
    std::this_thread::sleep_for(kRest);
    if (looks_ % kRests != 0) return true;
    return is_waiting(outcome, is_hopeless);
  }

 private:
  bool is_waiting(RunOutcome& outcome, const std::function<bool()>& is_hopeless) {
    const Clock::time_point now = Clock::now();
    if (const std::uint64_t steps = board_.steps_of_others(); steps != steps_) {
      steps_ = steps;
      since_ = now;
    }
    outcome.idle = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_);
    outcome.is_told |= board_.has_stopped();
    return outcome.idle < limit_ && !outcome.is_told && !board_.find_gone() && !is_hopeless();
  }

  static constexpr std::int64_t kLooks = 64;  // before it sleeps
  static constexpr std::chrono::microseconds kRest{50};
  static constexpr std::int64_t kRests = 64;  // between looks at the board

  const GroupBoard& board_;
  std::chrono::milliseconds limit_;
  std::int64_t looks_ = 0;
  Clock::time_point since_ = {};
  std::uint64_t steps_ = 0;
};

}  // namespace

RunOutcome run_rank(Marking& marking, GroupBoard& board, std::chrono::milliseconds wait_limit,
                    const std::function<bool()>& is_hopeless) {
  const Marking::Wake nobody = [](std::int32_t) {};
  Patience patience(board, wait_limit);
  RunOutcome outcome;
  while (true) {
    bool has_moved = false;
    outcome.finished = true;
    for (std::int32_t queue = 0; queue < marking.queues(); ++queue) {
      if (marking.is_finished(queue)) continue;
      outcome.finished = false;
      if (!marking.is_ready(queue)) continue;
      marking.step(queue, nobody);
      board.step();
      has_moved = true;
    }
    if (outcome.finished) return outcome;
    if (has_moved) {
      patience.restart();
    } else if (!patience.wait(outcome, is_hopeless)) {
      return outcome;
    }
  }
}

}  // namespace harpe::cpu
