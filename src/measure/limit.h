#pragma once

#include <optional>
#include <string_view>

#include "ir/program.h"

namespace harpe {

// The reachable time of a case on NVIDIA H200 GPUs of one host: R = max(C, W) + F.
struct Limit {
  // C: the best library's time for one rank's arithmetic, timed in the same rounds as the
  // schedules, while all GPUs are at work. None where no library ran.
  std::optional<double> arithmetic_us;
  // C too: what a rank must read of its memory at least, at 4.3 TB/s; 0 where arithmetic decides.
  double memory_us = 0;
  bool is_of_memory = false;  // memory alone is C, as for decode: the library's kernel is Harpe's
  double link_us = 0;         // W: what must cross one link, at 389 GB/s a direction
  double fixed_us = 0;        // F: starting a graph of one kernel, its ramp and end, visible hops

  // R. None where C is not known.
  [[nodiscard]] std::optional<double> total_us() const;
};

// Bytes that must cross the link of one rank, whatever the schedule; 0 where that is not known.
[[nodiscard]] double least_link_bytes(const Program& program, double ranks);

// The limit of one of the benchmarks' operators, but for the arithmetic, which is measured.
[[nodiscard]] Limit make_limit(const Program& program, std::string_view op, double ranks);

}  // namespace harpe
