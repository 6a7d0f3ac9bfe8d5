#pragma once

#include <cstdint>

#include "support/ids.h"

namespace harpe::processes {

// Which process has which ranks of a plan, and which host which processes: equally many each, in
// consecutive order.
struct Partition {
  int process = 0;  // this one
  int processes = 1;
  int processes_per_host = 1;
  std::int64_t ranks_each = 1;  // of a process

  [[nodiscard]] static Partition alone(std::int64_t ranks) { return {.ranks_each = ranks}; }
  [[nodiscard]] bool is_alone() const { return processes == 1; }
  [[nodiscard]] int process_of(RankId rank) const {
    return static_cast<int>(rank.value / ranks_each);
  }
  [[nodiscard]] bool is_own(RankId rank) const { return process_of(rank) == process; }
  [[nodiscard]] RankId first_of(int of) const { return RankId(of * ranks_each); }
  [[nodiscard]] int host_of(int of) const { return of / processes_per_host; }
  // Whether the process is on this process's host, itself included: its memory can be mapped.
  [[nodiscard]] bool is_near(int of) const { return host_of(of) == host_of(process); }
  [[nodiscard]] bool has_far() const { return processes > processes_per_host; }
};

}  // namespace harpe::processes
