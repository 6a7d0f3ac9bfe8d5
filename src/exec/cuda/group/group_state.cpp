#include "exec/cuda/group/group_state.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "exec/cuda/group/rank_executable.h"
#include "exec/cuda/runtime/graph.h"

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
  taken.reset();
  if (!board) return Ok{};
  board->begin(executable, places);
  const std::optional<Diag> mismatch = board->find_mismatch();
  if (!mismatch) return Ok{};
  give_up(*mismatch);
  return *failure;
}

// If an executable cannot be made to give up, its waits end by their limit.
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

// A refused launch has left its piece, which the next one uses.
Result<std::shared_ptr<std::byte>, LaunchFailure> GroupState::take(std::int64_t bytes,
                                                                   CUstream stream) {
  constexpr std::chrono::microseconds kBetween{50};
  const auto capture = find_capture(device.driver(), stream);
  if (!capture.ok()) return LaunchFailure(to_diag(capture.error()));
  const AgreedPieces::CaptureNumber number =
      *capture ? number_of(**capture) : AgreedPieces::kNoCapture;
  if (taken && taken_bytes == bytes && taken_in == number) return taken;
  taken.reset();
  // If a rank is that far behind, the GPUs that wait for it end by their limit.
  while (!pieces->can_take()) {
    if (const auto& ended = check()) return *ended;
    std::this_thread::sleep_for(kBetween);
  }
  if (*capture) let_others_come();
  const std::optional<AgreedPieces::Piece> piece = pieces->take(bytes, number);
  if (!piece) return std::shared_ptr<std::byte>();
  const auto give_back = [all = pieces, held = *piece, memory = tensors](std::byte*) {
    all->give_back(held);
  };
  const std::int64_t offset = heap->bytes() + piece->offset;
  auto* const begin = reinterpret_cast<std::byte*>(tensors->own.address());
  taken = std::shared_ptr<std::byte>(begin + offset, give_back);
  taken_bytes = bytes;
  taken_in = number;
  const Result<Ok, CudaError> ready = prepare(*piece, *capture, stream);
  if (!ready.ok()) {
    taken.reset();
    return LaunchFailure(to_diag(ready.error()));
  }
  return taken;
}

AgreedPieces::CaptureNumber GroupState::number_of(const ForeignCapture& capture) {
  if (std::exchange(last_capture, capture.id) != capture.id) {
    ++captures;
    others_come = true;
  }
  return captures;
}

void GroupState::let_others_come() {
  constexpr std::chrono::milliseconds kPatience{10};
  constexpr std::chrono::microseconds kBetween{10};
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (others_come && pieces->is_ahead()) {
    std::this_thread::sleep_for(kBetween);
    others_come = std::chrono::steady_clock::now() < until;
  }
}

// Another graph that had the piece has run for the last time.
Result<Ok, CudaError> GroupState::prepare(const AgreedPieces::Piece& piece,
                                          const std::optional<ForeignCapture>& capture,
                                          CUstream stream) {
  if (piece.index >= last_uses.size()) last_uses.resize(piece.index + 1);
  const LastUse before = std::exchange(last_uses[piece.index], {stream, taken_in});
  if (before.stream != nullptr && before.capture == taken_in) {
    HP_REQUIRE_OK(order_behind(before.stream, stream));
  }
  if (!capture) return Ok{};
  return capture->call_at_end(
      device.driver(), [all = pieces, held = piece, in = taken_in] { all->release(held, in); });
}

Result<Ok, CudaError> GroupState::order_behind(CUstream before, CUstream stream) const {
  if (before == stream) return Ok{};
  const DriverApi& driver = device.driver();
  HP_REQUIRE_OK(cuda_call(driver, "cuEventRecord", driver.cuEventRecord(other.handle(), before)));
  return cuda_call(driver, "cuStreamWaitEvent",
                   driver.cuStreamWaitEvent(stream, other.handle(), 0));
}

Result<Ok, CudaError> GroupState::wait_for_last() const {
  if (launches == 0) return Ok{};
  const DriverApi& driver = device.driver();
  return cuda_call(driver, "cuEventSynchronize", driver.cuEventSynchronize(last.handle()));
}

}  // namespace harpe::cuda
