#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "support/diag.h"

namespace harpe::cli {

struct LaunchRequest {
  std::vector<std::string> arguments;  // of every process: this program's, but its name
  int ranks = 1;
  int hosts = 1;  // that they take themselves to be on, equally many on each
  // Once one ended badly, the others have so long to say what they know of it, and are killed then.
  std::chrono::milliseconds grace{15'000};
};

// How one of the processes ended.
struct ProcessEnd {
  int rank = 0;
  int status = 0;             // its exit status; 128 + the signal's number for one killed
  std::optional<int> signal;  // that killed it
  bool was_stopped = false;   // by this, after the time of grace
};

// Starts this program once for each rank on this machine, with a secret of their own, and waits for
// all; those that started end with this process. In the order in which they ended. Errors: X018 one
// does not start.
[[nodiscard]] Checked<std::vector<ProcessEnd>> start_processes(const LaunchRequest& request);

}  // namespace harpe::cli
