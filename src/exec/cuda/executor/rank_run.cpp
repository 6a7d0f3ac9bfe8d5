#include "exec/cuda/executor/rank_run.h"

#include <algorithm>

namespace harpe::cuda {
namespace {

// More executions of one rank in the driver's queue would delay other ranks on the same GPU.
constexpr std::size_t kMostWindow = 32;
// Enough that the GPU never waits for the host.
constexpr std::size_t kLeastWindow = 2;
// Enqueued executions still run after a failure, so they must end soon.
constexpr double kWindowMs = 125;

}  // namespace

std::size_t window_of(double milliseconds) {
  if (!(milliseconds > 0)) return kLeastWindow;
  const double count = std::clamp(kWindowMs / milliseconds, static_cast<double>(kLeastWindow),
                                  static_cast<double>(kMostWindow));
  return static_cast<std::size_t>(count);
}

void RankRun::go(std::span<const RankProgram* const> programs, const std::atomic<bool>& stop) {
  const Result<Ok, CudaError> done = replay_all(programs, stop);
  if (!done.ok()) end = done.error();
}

Result<Ok, CudaError> RankRun::replay(const RankProgram& program, const Stream& stream) const {
  if (chain) return chain->launch(stream);
  return is_traced ? program.replay_traced() : program.replay(stream);
}

Result<Ok, CudaError> RankRun::replay_all(std::span<const RankProgram* const> programs,
                                          const std::atomic<bool>& stop) {
  const RankProgram& program = *programs.front();
  HP_REQUIRE_OK(program.device().make_current());
  const DriverApi& driver = program.device().driver();
  HP_REQUIRE_OK(ends.front().record(program.origin()));
  std::size_t window = kLeastWindow;
  const auto count = static_cast<std::size_t>(stamps.executions());
  for (std::size_t i = 1; i <= count; ++i) {
    if (stamps.time_each() && i % window == 0 && i > 2 * window) {
      const std::size_t past = i - 2 * window;
      HP_REQUIRE_OK(
          cuda_call(driver, "cuEventSynchronize", driver.cuEventSynchronize(ends[past].handle())));
      const Result<double, CudaError> took = ends[past].milliseconds_since(ends[past - 1]);
      window = window_of(took.ok() ? *took : 0);
    }
    was_stopped = stop.load();
    if (was_stopped) break;
    HP_REQUIRE_OK(replay(*programs[(i - 1) % programs.size()], program.origin()));
    if (const auto at = stamps.behind(static_cast<std::int64_t>(i))) {
      HP_REQUIRE_OK(ends[static_cast<std::size_t>(*at)].record(program.origin()));
    }
  }
  return program.origin().synchronize();
}

}  // namespace harpe::cuda
