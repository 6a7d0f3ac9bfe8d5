#pragma once

#include <optional>
#include <string_view>

#include "ir/program.h"

namespace harpe {

// The reachable time of a case on NVIDIA H200 GPUs of one host: R = max(C, W) + F.
struct Limit {
  // C: the time of the best library for one rank's arithmetic, measured in the same rounds as the
  // schedules while all GPUs work. None if no library ran.
  std::optional<double> arithmetic_us;
  // Also C: the least time in which a rank can read its data at 4.3 TB/s; 0 where arithmetic
  // decides.
  double memory_us = 0;
  bool is_of_memory = false;  // C is memory only, as for decode, where the library's kernel is
                              // Harpe's
  double link_us = 0;         // W: the bytes that must cross one link, at 389 GB/s per direction
  double fixed_us = 0;        // F: starting a graph of one kernel, its ramp and end, visible hops

  // R. None if C is unknown.
  [[nodiscard]] std::optional<double> total_us() const;
};

// Bytes that must cross the link of one rank under any schedule; 0 if unknown.
[[nodiscard]] double least_link_bytes(const Program& program, double ranks);

// The limit of one of the benchmarks' operators, without the arithmetic, which is measured.
[[nodiscard]] Limit make_limit(const Program& program, std::string_view op, double ranks);

}  // namespace harpe
