#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "support/result.h"

namespace harpe::processes {

// This process among those that a launcher started, which launchers call ranks. Those of one host
// are numbered one after the other.
struct Launch {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;          // among those of its host: which GPU it takes
  int local_ranks = 1;         // of each host
  std::string address;         // where they meet, as of `Socket`
  std::string interface = "";  // of the network between hosts; "" for any
  std::string secret = "";     // that all were given; "" trusts whoever reaches the address
  std::chrono::milliseconds arrival{60'000};  // how long they wait for each other to come
  // What said how many processes there are, and how many a host has: variables, or flags.
  std::string ranks_by = "WORLD_SIZE";
  std::string local_ranks_by = "LOCAL_WORLD_SIZE";

  [[nodiscard]] int hosts() const { return ranks / local_ranks; }
  [[nodiscard]] int host() const { return rank / local_ranks; }
  friend bool operator==(const Launch&, const Launch&) = default;
};

// A variable of the environment that a launcher sets, and that is not as it should be.
struct LaunchError {
  std::string variable;
  std::string reason;
};

// A variable's value, where it is set.
using ReadVariable = std::function<std::optional<std::string>(const std::string&)>;

// What torchrun (and whoever sets the same by hand), mpirun of Open MPI or Slurm's srun say; none
// where no launcher started this process. Where they say how many processes each host has, there
// may be several hosts. `HARPE_ADDRESS` names another place to meet, `HARPE_INTERFACE` a network
// interface, `HARPE_SECRET` a secret.
[[nodiscard]] Result<std::optional<Launch>, LaunchError> find_launch(const ReadVariable& read);

}  // namespace harpe::processes
