#pragma once

#include <optional>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "exec/processes/partition.h"
#include "exec/processes/process_group.h"

namespace harpe::processes {

// What a process reports of its part of a run.
struct ProcessReport {
  FaultReport faults;  // empty: no failure
  std::int64_t bytes_moved = 0;
  std::chrono::nanoseconds cpu_time{0};
  NetworkStats network;
};

// Serialises a report for another process, and back; none if the bytes are no report.
[[nodiscard]] transport::Blob pack(const ProcessReport& report);
[[nodiscard]] std::optional<ProcessReport> unpack(std::span<const std::byte> bytes);

// The reports of all processes as one: sums, and faults with the root cause first. Lost processes
// come first, then ranks whose missing signal no other fault explains.
[[nodiscard]] ProcessReport merge(const std::vector<ProcessGroup::Answer>& answers,
                                  const ProcessReport& own, const Partition& partition);

}  // namespace harpe::processes
