#include "measure/turns.h"

#include <algorithm>

#include "exec/takes_turns.h"

namespace harpe {
namespace {

constexpr std::int64_t kWarmUpTurns = 3;
constexpr double kLongestTurnUs = 300e3;
constexpr std::int64_t kLeastIterations = 2;

// Fewer iterations if executions are long.
std::int64_t fitting(std::int64_t iterations, double expected_us) {
  const auto most = static_cast<std::int64_t>(kLongestTurnUs / std::max(1.0, expected_us));
  return std::min(iterations, std::max(kLeastIterations, most));
}

Result<std::vector<double>, FaultReport> execute(std::span<Executor* const> executors,
                                                 std::int64_t iterations,
                                                 std::chrono::milliseconds wait_limit) {
  const RunOptions options{.iterations = iterations, .wait_limit = wait_limit, .in_a_row = true};
  const auto run = [&]() -> Result<RunStats, FaultReport> {
    if (executors.size() == 1) return executors.front()->run(options);
    return dynamic_cast<TakesTurns&>(*executors.front())
        .run_in_turns(executors.subspan(1), options);
  };
  HP_TRY(const RunStats stats, run());
  std::vector<double> times;
  for (const auto time : stats.iterations) {
    times.push_back(std::chrono::duration<double, std::micro>(time).count());
  }
  return times;
}

}  // namespace

Result<double, FaultReport> warm_up(Executor& executor, std::chrono::milliseconds wait_limit) {
  Executor* const only = &executor;
  HP_TRY(const std::vector<double> times, execute({&only, 1}, kWarmUpTurns, wait_limit));
  return times.back();
}

Result<std::vector<double>, FaultReport> take_turn(std::span<Executor* const> executors,
                                                   double expected_us, std::int64_t iterations,
                                                   std::chrono::milliseconds wait_limit) {
  HP_TRY(std::vector<double> times,
         execute(executors, 1 + fitting(iterations, expected_us), wait_limit));
  times.erase(times.begin());
  return times;
}

Result<std::optional<double>, FaultReport> take_turn_in_graph(
    std::span<Executor* const> executors, double expected_us, std::int64_t iterations,
    std::chrono::milliseconds wait_limit) {
  auto* const first = dynamic_cast<TakesTurns*>(executors.front());
  if (first == nullptr) return std::optional<double>();
  HP_TRY(const double time,
         first->time_in_graph(executors.subspan(1), fitting(iterations, expected_us), wait_limit));
  return std::optional(time);
}

}  // namespace harpe
