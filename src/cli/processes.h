#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "support/diag.h"

namespace harpe::cli {

struct LaunchRequest {
  std::vector<std::string> arguments;  // of every process: this program's, without its name
  int ranks = 1;
  int hosts = 1;  // hosts that they assume to be on, with equally many on each
  // Once a process failed, the others have this long to report and end; then they are killed.
  std::chrono::milliseconds grace{15'000};
};

// How one of the processes ended.
struct ProcessEnd {
  int rank = 0;
  int status = 0;             // exit status; 128 + the signal's number if killed
  std::optional<int> signal;  // the signal that killed it
  bool was_stopped = false;   // killed by this function after the grace period
};

// Starts this program once per rank on this machine, with a new common secret, and waits for all of
// them. They end together with this process. Results are in the order in which processes ended.
// Errors: X018 one does not start.
[[nodiscard]] Checked<std::vector<ProcessEnd>> start_processes(const LaunchRequest& request);

}  // namespace harpe::cli
