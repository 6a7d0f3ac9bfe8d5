#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "exec/cuda/device/wait_args.h"
#include "exec/cuda/signals/clock_kernels.h"
#include "plan/plan.h"

namespace harpe::cuda {

// A moment of a launch that is stamped.
enum class Moment : std::uint8_t {
  Reached,  // its queue has come to it: before its waits, where it has some
  Start,    // they are over
  End,      // its work is over; not stamped where it has none
};

// Of a launch, by its GPU's clock in nanoseconds; kNever where it was not stamped.
struct LaunchTimes {
  std::uint64_t reached = device::kNever;
  std::uint64_t start = device::kNever;
  std::uint64_t end = device::kNever;
};

// What a traced execution left on a rank's GPU.
struct RankTimes {
  std::vector<LaunchTimes> launches;        // in order
  std::vector<device::Sighting> sightings;  // by signal of the rank's page
  std::int64_t stamp_ns = 0;                // from a stamp to the next with nothing in between
  std::map<TaskId, std::vector<device::BlockNotes>> notes{};  // of kernels, by their first task
};

// Where a rank's traced executions leave their times, in its GPU's memory, and how they are put
// there. Orders require that the GPU is current for the calling thread.
class RankTrace {
 public:
  // Requires: `library` outlives this. Errors: G005, as of `KernelLibrary::load`.
  [[nodiscard]] static Checked<RankTrace> make(KernelLibrary& library, std::size_t most_launches,
                                               std::size_t words);

  // For kernels that wait inside.
  [[nodiscard]] device::Sighting* sightings() const;

  // Room for what the blocks of a kernel note, whose first task is named. Errors: G005, G008.
  [[nodiscard]] Checked<device::BlockNotes*> add_notes(TaskId kernel);

  // Before all else of an execution: forgets the one before.
  [[nodiscard]] Result<Ok, CudaError> begin(const Stream& stream) const;
  [[nodiscard]] Result<Ok, CudaError> stamp(const Stream& stream, std::size_t launch,
                                            Moment moment) const;

  // How the GPU's clock stands to the host's. Errors: G005.
  [[nodiscard]] Checked<ClockOffset> look(const Stream& stream) const {
    return clock_.look(stream);
  }
  // Of the last execution. Requires: it is over. Errors: G005.
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
  DeviceMemory words_;  // of 64 bits: bare stamps, three for each launch, sightings
  std::size_t launches_;
  std::map<TaskId, DeviceMemory> notes_;
};

}  // namespace harpe::cuda
