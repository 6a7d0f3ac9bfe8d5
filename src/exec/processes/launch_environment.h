#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "support/result.h"

namespace harpe::processes {

// This process among those that a launcher started, which launchers call ranks. Processes of one
// host have consecutive numbers.
struct Launch {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;          // within its host: selects its GPU
  int local_ranks = 1;         // of each host
  std::string address;         // where processes meet, as in `Socket`
  std::string interface = "";  // of the network between hosts; "" for any
  std::string secret = "";     // common to all processes; "" accepts any that reaches the address
  std::chrono::milliseconds arrival{60'000};  // how long processes wait for each other to arrive
  // The sources of `ranks` and of `local_ranks`: variables, or flags.
  std::string ranks_by = "WORLD_SIZE";
  std::string local_ranks_by = "LOCAL_WORLD_SIZE";

  [[nodiscard]] int hosts() const { return ranks / local_ranks; }
  [[nodiscard]] int host() const { return rank / local_ranks; }
  friend bool operator==(const Launch&, const Launch&) = default;
};

// An environment variable of a launcher with an invalid value.
struct LaunchError {
  std::string variable;
  std::string reason;
};

// A variable's value, if it is set.
using ReadVariable = std::function<std::optional<std::string>(const std::string&)>;

// Reads the variables of torchrun (or the same ones set by hand), of Open MPI's mpirun or of
// Slurm's srun; none if no launcher started this process. There may be several hosts only if the
// variables state how many processes each host has. `HARPE_ADDRESS` sets another meeting place,
// `HARPE_INTERFACE` a network interface, `HARPE_SECRET` a secret.
[[nodiscard]] Result<std::optional<Launch>, LaunchError> find_launch(const ReadVariable& read);

}  // namespace harpe::processes
