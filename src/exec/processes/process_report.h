#pragma once

#include <optional>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "exec/processes/partition.h"
#include "exec/processes/process_group.h"

namespace harpe::processes {

// What a process says of its part of a run.
struct ProcessReport {
  FaultReport faults;  // none: all is well
  std::int64_t bytes_moved = 0;
  std::chrono::nanoseconds cpu_time{0};
  NetworkStats network;
};

// As bytes for another process, and back; none where they are no report.
[[nodiscard]] transport::Blob pack(const ProcessReport& report);
[[nodiscard]] std::optional<ProcessReport> unpack(std::span<const std::byte> bytes);

// Of all processes as one: sums, and faults with the root cause first. A process that is lost comes
// before all, then one whose missing signal no other fault explains.
[[nodiscard]] ProcessReport merge(const std::vector<ProcessGroup::Answer>& answers,
                                  const ProcessReport& own, const Partition& partition);

}  // namespace harpe::processes
