#pragma once

#include <cstdint>
#include <span>

namespace harpe::cuda {

// One question to a GPU for its time, and when the host asked and had the answer. Nanoseconds, each
// clock's own.
struct ClockSample {
  std::int64_t asked = 0;
  std::int64_t gpu = 0;
  std::int64_t answered = 0;
};

// What makes a GPU's time one of the host's, about when it was found.
struct ClockOffset {
  std::int64_t at = 0;  // on the host's clock
  std::int64_t offset = 0;
  std::int64_t uncertainty = 0;  // it is within this of the truth
  friend bool operator==(const ClockOffset&, const ClockOffset&) = default;
};

// The GPU read its clock after it was asked and before it had answered, in every sample, and shows
// a time for up to `step` after it has come: what all of that leaves, and half of its width.
// Where it leaves nothing, for clocks that drift apart meanwhile, half of what is missing.
// Requires: a sample.
[[nodiscard]] ClockOffset offset_of(std::span<const ClockSample> samples, std::int64_t step);

// A GPU's clock between two looks at it, which may drift against the host's: on a line from the one
// offset to the other.
struct ClockFit {
  ClockOffset before;
  ClockOffset after;

  [[nodiscard]] std::int64_t to_host(std::int64_t gpu) const;
  [[nodiscard]] std::int64_t uncertainty() const;  // of any time between the two
};

}  // namespace harpe::cuda
