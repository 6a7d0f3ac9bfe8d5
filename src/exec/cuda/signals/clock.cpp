#include "exec/cuda/signals/clock.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/check.h"

namespace harpe::cuda {

ClockOffset offset_of(std::span<const ClockSample> samples, std::int64_t step) {
  HP_CHECK(!samples.empty(), "an offset is found from samples");
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  for (const ClockSample& sample : samples) {
    low = std::max(low, sample.asked - sample.gpu - step);
    high = std::min(high, sample.answered - sample.gpu);
  }
  // A timestamp also lasts up to a step, so on average it is half a step early.
  return {.at = samples.back().answered,
          .offset = low + (high - low) / 2 + step / 2,
          .uncertainty = (std::abs(high - low) + step + 1) / 2};
}

std::int64_t ClockFit::to_host(std::int64_t gpu) const {
  const std::int64_t at = gpu + before.offset;
  const std::int64_t whole = after.at - before.at;
  if (whole <= 0) return at;
  const double share =
      std::clamp(static_cast<double>(at - before.at) / static_cast<double>(whole), 0.0, 1.0);
  return at + std::llround(share * static_cast<double>(after.offset - before.offset));
}

std::int64_t ClockFit::uncertainty() const {
  return std::max(before.uncertainty, after.uncertainty);
}

}  // namespace harpe::cuda
