#include "exec/cuda/signals/clock_kernels.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

#include "exec/cuda/runtime/current_device.h"
#include "exec/cuda/signals/device/clock_args.h"
#include "exec/cuda/signals/signal_variants.h"

namespace harpe::cuda {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr std::uint32_t kRounds = 256;
constexpr std::chrono::seconds kLimit{1};

std::int64_t host_time() {
  return std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

// The host's side of a ClockPage.
class Asker {
 public:
  explicit Asker(device::ClockPage& page) : page_(page) {}

  // None if the GPU does not answer.
  std::optional<ClockSample> ask(std::uint32_t round) {
    ClockSample sample{.asked = host_time()};
    std::atomic_ref(page_.asked).store(round, std::memory_order_release);
    if (!wait_for(round)) return std::nullopt;
    sample.answered = host_time();
    sample.gpu = static_cast<std::int64_t>(page_.gpu_ns);
    return sample;
  }

  bool wait_for(std::uint32_t round) {
    while (std::atomic_ref(page_.answered).load(std::memory_order_acquire) != round) {
      if (steady_clock::now() > end_) return false;
    }
    return true;
  }

 private:
  device::ClockPage& page_;
  steady_clock::time_point end_ = steady_clock::now() + kLimit;
};

std::optional<ClockOffset> ask_often(device::ClockPage& page) {
  Asker asker(page);
  std::vector<ClockSample> samples;
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    const std::optional<ClockSample> sample = asker.ask(round);
    if (!sample) return std::nullopt;
    samples.push_back(*sample);
  }
  if (!asker.wait_for(kRounds + 1)) return std::nullopt;
  return offset_of(samples, static_cast<std::int64_t>(page.step_ns));
}

}  // namespace

Checked<ClockKernels> ClockKernels::load(KernelLibrary& library) {
  HP_TRY(const LoadedKernel* const stamp, library.load(stamp_variant()));
  HP_TRY(const LoadedKernel* const answer, library.load(answer_clock_variant()));
  return ClockKernels(library.device(), stamp, answer);
}

Result<Ok, CudaError> ClockKernels::stamp(const Stream& stream, DeviceAddress at) const {
  const device::StampArgs args{.at = reinterpret_cast<std::uint64_t*>(at)};
  return launch(device_->driver(), *stamp_, LaunchShape{}, stream.handle(), args);
}

Checked<ClockOffset> ClockKernels::look(const Stream& stream) const {
  const CurrentDevice current(*device_);
  const DriverApi& driver = device_->driver();
  HP_TRY(const MappedMemory memory, MappedMemory::allocate(*device_, sizeof(device::ClockPage)));
  const device::AnswerClockArgs args{
      .page = reinterpret_cast<device::ClockPage*>(memory.address()),
      .rounds = kRounds,
      .limit_ns = static_cast<std::uint64_t>(nanoseconds(kLimit).count())};
  const auto started = launch(driver, *answer_, LaunchShape{}, stream.handle(), args);
  if (!started.ok()) return to_diag(started.error());
  const std::optional<ClockOffset> offset =
      ask_often(*reinterpret_cast<device::ClockPage*>(memory.host().data()));
  const auto over = stream.synchronize();
  if (!over.ok()) return to_diag(over.error());
  if (offset) return *offset;
  return to_diag(cuda_call(driver, "answer_clock", CUDA_ERROR_LAUNCH_TIMEOUT).error());
}

}  // namespace harpe::cuda
