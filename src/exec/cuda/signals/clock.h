#pragma once

#include <cstdint>
#include <span>

namespace harpe::cuda {

// One query of a GPU's clock, and when the host sent it and had the answer. Nanoseconds of each
// clock.
struct ClockSample {
  std::int64_t asked = 0;
  std::int64_t gpu = 0;
  std::int64_t answered = 0;
};

// What converts a GPU's time to the host's, and when it was measured.
struct ClockOffset {
  std::int64_t at = 0;  // on the host's clock
  std::int64_t offset = 0;
  std::int64_t uncertainty = 0;  // maximum error
  friend bool operator==(const ClockOffset&, const ClockOffset&) = default;
};

// In every sample the GPU read its clock after the query and before the answer, and a clock value
// lasts up to `step`. The offset is the middle of the interval that all samples leave, its
// uncertainty half the width. If clocks drifted apart so that no interval is left, it is half of
// what is missing. Requires: a sample.
[[nodiscard]] ClockOffset offset_of(std::span<const ClockSample> samples, std::int64_t step);

// A GPU's clock between two measurements, as it may drift against the host's: the offset is
// interpolated linearly.
struct ClockFit {
  ClockOffset before;
  ClockOffset after;

  [[nodiscard]] std::int64_t to_host(std::int64_t gpu) const;
  [[nodiscard]] std::int64_t uncertainty() const;  // of any time between the two measurements
};

}  // namespace harpe::cuda
