#include "exec/cuda/executor/rank_trace.h"

#include <cstring>

#include "exec/cuda/runtime/current_device.h"

namespace harpe::cuda {
namespace {

// Adjacent timestamps that measure their own cost.
constexpr std::size_t kBare = 9;
constexpr std::size_t kMoments = 3;
constexpr std::size_t kWordsOfSighting = sizeof(device::Sighting) / sizeof(std::uint64_t);

}  // namespace

Checked<RankTrace> RankTrace::make(KernelLibrary& library, std::size_t most_launches,
                                   std::size_t words) {
  HP_TRY(const ClockKernels clock, ClockKernels::load(library));
  const std::size_t count = kBare + most_launches * kMoments + words * kWordsOfSighting;
  HP_TRY(DeviceMemory memory,
         DeviceMemory::zeros(library.device(), static_cast<std::int64_t>(count) * 2));
  return RankTrace(library.device(), clock, std::move(memory), most_launches);
}

device::Sighting* RankTrace::sightings() const {
  const std::size_t before = kBare + launches_ * kMoments;
  return reinterpret_cast<device::Sighting*>(words_.address() + before * sizeof(std::uint64_t));
}

Checked<device::BlockNotes*> RankTrace::add_notes(TaskId kernel) {
  static_assert(sizeof(device::BlockNotes) % sizeof(std::uint32_t) == 0);
  const auto blocks = static_cast<std::int64_t>(device_->facts().multiprocessors);
  const std::int64_t bytes = blocks * static_cast<std::int64_t>(sizeof(device::BlockNotes));
  HP_TRY(DeviceMemory memory, DeviceMemory::zeros(*device_, bytes / 4));
  auto* const notes = reinterpret_cast<device::BlockNotes*>(memory.address());
  notes_.emplace(kernel, std::move(memory));
  return notes;
}

Result<Ok, CudaError> RankTrace::stamp_word(const Stream& stream, std::size_t word) const {
  return clock_.stamp(stream, words_.address() + word * sizeof(std::uint64_t));
}

Result<Ok, CudaError> RankTrace::begin(const Stream& stream) const {
  HP_REQUIRE_OK(fill(stream, words_, 0xff));
  for (const auto& [kernel, notes] : notes_) HP_REQUIRE_OK(fill(stream, notes, 0));
  for (std::size_t word = 0; word < kBare; ++word) HP_REQUIRE_OK(stamp_word(stream, word));
  return Ok{};
}

Result<Ok, CudaError> RankTrace::stamp(const Stream& stream, std::size_t launch,
                                       Moment moment) const {
  return stamp_word(stream, kBare + launch * kMoments + static_cast<std::size_t>(moment));
}

Result<Ok, CudaError> RankTrace::fill(const Stream& stream, const DeviceMemory& memory,
                                      unsigned char value) const {
  const DriverApi& driver = device_->driver();
  return cuda_call(
      driver, "cuMemsetD8Async",
      driver.cuMemsetD8Async(memory.address(), value, static_cast<std::size_t>(memory.bytes()),
                             stream.handle()));
}

template <class T>
Checked<std::vector<T>> RankTrace::read(const DeviceMemory& memory) const {
  const DriverApi& driver = device_->driver();
  std::vector<T> values(static_cast<std::size_t>(memory.bytes()) / sizeof(T));
  HP_REQUIRE_OK(driver_call(driver, "cuMemcpyDtoHAsync",
                            driver.cuMemcpyDtoHAsync(values.data(), memory.address(),
                                                     values.size() * sizeof(T), nullptr)));
  HP_REQUIRE_OK(driver_call(driver, "cuStreamSynchronize", driver.cuStreamSynchronize(nullptr)));
  return values;
}

Checked<RankTimes> RankTrace::read() const {
  const CurrentDevice current(*device_);
  HP_TRY(const std::vector<std::uint64_t> words, read<std::uint64_t>(words_));
  RankTimes times;
  times.stamp_ns = static_cast<std::int64_t>((words[kBare - 1] - words[0]) / (kBare - 1));
  for (std::size_t launch = 0; launch < launches_; ++launch) {
    const std::uint64_t* const at = &words[kBare + launch * kMoments];
    times.launches.push_back({.reached = at[0], .start = at[1], .end = at[2]});
  }
  const std::size_t before = kBare + launches_ * kMoments;
  times.sightings.resize((words.size() - before) / kWordsOfSighting);
  std::memcpy(times.sightings.data(), words.data() + before,
              times.sightings.size() * sizeof(device::Sighting));
  for (const auto& [kernel, notes] : notes_) {
    HP_TRY(times.notes[kernel], read<device::BlockNotes>(notes));
  }
  return times;
}

}  // namespace harpe::cuda
