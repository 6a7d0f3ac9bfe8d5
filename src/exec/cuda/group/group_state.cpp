#include "exec/cuda/group/group_state.h"

#include "exec/cuda/group/rank_executable.h"

namespace harpe::cuda {

const std::optional<LaunchFailure>& GroupState::check() {
  if (failure) return failure;
  for (const CudaRankExecutable* const executable : live) {
    if (!executable->has_failed()) continue;
    failure = executable->explain();
    break;
  }
  return failure;
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
