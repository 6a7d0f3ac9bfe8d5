#include "exec/kernel_times.h"

#include <algorithm>

namespace harpe {

using std::chrono::nanoseconds;

std::map<TaskId, KernelTimes> times_of(std::span<const KernelEvent> events) {
  std::map<TaskId, KernelTimes> kernels;
  for (const KernelEvent& event : events) {
    KernelTimes& kernel = kernels[event.kernel];
    if (event.part == KernelPart::Held) {
      kernel.reached = event.start;
      kernel.launched = event.end;
    } else if (event.part == KernelPart::Work) {
      kernel.begin = std::min(kernel.begin, event.start);
      kernel.end = std::max(kernel.end, event.end);
      if (!event.copies) ++kernel.blocks;
    } else if (!event.copies) {
      kernel.stands.push_back(event);
    }
  }
  std::erase_if(kernels, [](const auto& kernel) { return kernel.second.blocks == 0; });
  return kernels;
}

nanoseconds stood_within(const KernelTimes& kernel, nanoseconds begin, nanoseconds end) {
  nanoseconds sum{0};
  for (const KernelEvent& stand : kernel.stands) {
    sum += std::max(nanoseconds(0), std::min(stand.end, end) - std::max(stand.start, begin));
  }
  return sum / kernel.blocks;
}

std::vector<StandingBlocks> standing_blocks(std::span<const KernelEvent> events) {
  std::map<nanoseconds, StandingBlocks> changes;
  const auto change = [&](nanoseconds at, bool copies, std::int64_t by) {
    (copies ? changes[at].copying : changes[at].multiplying) += by;
  };
  for (const KernelEvent& event : events) {
    if (event.part != KernelPart::Stand || event.start == event.end) continue;
    change(event.start, event.copies, 1);
    change(event.end, event.copies, -1);
  }
  std::vector<StandingBlocks> counts;
  StandingBlocks now;
  for (const auto& [at, by] : changes) {
    now = {at, now.multiplying + by.multiplying, now.copying + by.copying};
    const bool is_new = counts.empty() || counts.back().multiplying != now.multiplying ||
                        counts.back().copying != now.copying;
    if (is_new) counts.push_back(now);
  }
  return counts;
}

}  // namespace harpe
