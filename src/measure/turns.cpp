#include "measure/turns.h"

#include <algorithm>

namespace harpe {
namespace {

constexpr std::int64_t kWarmUpTurns = 3;
constexpr double kLongestTurnUs = 300e3;
constexpr std::int64_t kLeastIterations = 2;

Result<std::vector<double>, FaultReport> execute(Executor& executor, std::int64_t iterations,
                                                 std::chrono::milliseconds wait_limit) {
  HP_TRY(const RunStats stats, executor.run({.iterations = iterations, .wait_limit = wait_limit}));
  std::vector<double> times;
  for (const auto time : stats.iterations) {
    times.push_back(std::chrono::duration<double, std::micro>(time).count());
  }
  return times;
}

}  // namespace

Result<double, FaultReport> warm_up(Executor& executor, std::chrono::milliseconds wait_limit) {
  HP_TRY(const std::vector<double> times, execute(executor, kWarmUpTurns, wait_limit));
  return times.back();
}

Result<std::vector<double>, FaultReport> take_turn(Executor& executor, double expected_us,
                                                   std::int64_t iterations,
                                                   std::chrono::milliseconds wait_limit) {
  const auto fitting = static_cast<std::int64_t>(kLongestTurnUs / std::max(1.0, expected_us));
  HP_TRY(
      std::vector<double> times,
      execute(executor, 1 + std::min(iterations, std::max(kLeastIterations, fitting)), wait_limit));
  times.erase(times.begin());
  return times;
}

}  // namespace harpe
