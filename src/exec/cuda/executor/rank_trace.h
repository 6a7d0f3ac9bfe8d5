#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "exec/cuda/device/wait_args.h"
#include "exec/cuda/signals/clock_kernels.h"
#include "plan/plan.h"

namespace harpe::cuda {

// A moment of a launch that has a timestamp.
enum class Moment : std::uint8_t {
  Reached,  // the queue has reached it: before its waits, if it has any
  Start,    // its waits are over
  End,      // its work is over; no timestamp without work
};

// Timestamps of a launch, by its GPU's clock in nanoseconds; kNever without a timestamp.
struct LaunchTimes {
  std::uint64_t reached = device::kNever;
  std::uint64_t start = device::kNever;
  std::uint64_t end = device::kNever;
};

// The times of a traced execution on a rank's GPU.
struct RankTimes {
  std::vector<LaunchTimes> launches;                          // in order
  std::vector<device::Sighting> sightings;                    // by signal of the rank's page
  std::int64_t stamp_ns = 0;                                  // between two adjacent timestamps
  std::map<TaskId, std::vector<device::BlockNotes>> notes{};  // of kernels, by their first task
};

// The memory for a rank's times on its GPU, and the launches that fill it. Functions that enqueue
// work require that the GPU is current for the calling thread.
class RankTrace {
 public:
  // Requires: `library` outlives this. Errors: G005; those of `KernelLibrary::load`.
  [[nodiscard]] static Checked<RankTrace> make(KernelLibrary& library, std::size_t most_launches,
                                               std::size_t words);

  // For kernels that wait inside.
  [[nodiscard]] device::Sighting* sightings() const;

  // Memory for the notes of a kernel's blocks; `kernel` is its first task. Errors: G005, G008.
  [[nodiscard]] Checked<device::BlockNotes*> add_notes(TaskId kernel);

  // Enqueued first in an execution: clears the times of the previous one.
  [[nodiscard]] Result<Ok, CudaError> begin(const Stream& stream) const;
  [[nodiscard]] Result<Ok, CudaError> stamp(const Stream& stream, std::size_t launch,
                                            Moment moment) const;

  // The offset of the GPU's clock from the host's. Errors: G005.
  [[nodiscard]] Checked<ClockOffset> look(const Stream& stream) const {
    return clock_.look(stream);
  }
  // Times of the last execution. Requires: it has ended. Errors: G005.
  [[nodiscard]] Checked<RankTimes> read() const;

 private:
  RankTrace(const Device& device, ClockKernels clock, DeviceMemory words, std::size_t launches)
      : device_(&device), clock_(clock), words_(std::move(words)), launches_(launches) {}

  [[nodiscard]] Result<Ok, CudaError> stamp_word(const Stream& stream, std::size_t word) const;
  [[nodiscard]] Result<Ok, CudaError> fill(const Stream& stream, const DeviceMemory& memory,
                                           unsigned char value) const;
  template <class T>
  [[nodiscard]] Checked<std::vector<T>> read(const DeviceMemory& memory) const;

  const Device* device_;
  ClockKernels clock_;
  DeviceMemory words_;  // of 64 bits: adjacent timestamps, three per launch, sightings
  std::size_t launches_;
  std::map<TaskId, DeviceMemory> notes_;
};

}  // namespace harpe::cuda
