#include "exec/cuda/group/group_state.h"

#include <algorithm>

#include "exec/cuda/group/rank_executable.h"

namespace harpe::cuda {

const std::optional<LaunchFailure>& GroupState::check() {
  if (failure) return failure;
  if (board && board->has_stopped()) {
    if (const auto mismatch = board->find_mismatch(GroupBoard::kHistory)) give_up(*mismatch);
  }
  if (failure) return failure;
  failure = find_failure();
  if (failure && board) board->stop();
  return failure;
}

std::optional<LaunchFailure> GroupState::find_failure() const {
  const auto failed = std::ranges::find_if(
      live, [](const CudaRankExecutable* executable) { return executable->has_failed(); });
  if (failed == live.end()) return std::nullopt;
  if (board) {
    if (auto mismatch = board->find_mismatch(GroupBoard::kHistory)) return *std::move(mismatch);
  }
  return (*failed)->explain();
}

Result<Ok, LaunchFailure> GroupState::begin(std::uint32_t executable, std::uint64_t places) {
  if (!board) return Ok{};
  board->begin(executable, places);
  const std::optional<Diag> mismatch = board->find_mismatch();
  if (!mismatch) return Ok{};
  give_up(*mismatch);
  return *failure;
}

// Where that cannot be ordered, waits end by their limit.
void GroupState::give_up(const Diag& mismatch) {
  failure = mismatch;
  board->stop();
  for (const CudaRankExecutable* const executable : live) {
    static_cast<void>(executable->give_up());
  }
}

Result<Ok, CudaError> GroupState::order_behind_last(CUstream stream) const {
  if (launches == 0 || stream == last_stream) return Ok{};
  const DriverApi& driver = device.driver();
  return cuda_call(driver, "cuStreamWaitEvent", driver.cuStreamWaitEvent(stream, last.handle(), 0));
}

Result<Ok, CudaError> GroupState::note_last(CUstream stream) {
  ++launches;
  last_stream = stream;
  const DriverApi& driver = device.driver();
  return cuda_call(driver, "cuEventRecord", driver.cuEventRecord(last.handle(), stream));
}

Result<Ok, CudaError> GroupState::wait_for_last() const {
  if (launches == 0) return Ok{};
  const DriverApi& driver = device.driver();
  return cuda_call(driver, "cuEventSynchronize", driver.cuEventSynchronize(last.handle()));
}

}  // namespace harpe::cuda
