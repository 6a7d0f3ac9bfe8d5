#pragma once

#include <functional>
#include <optional>
#include <string>

#include "support/result.h"

namespace harpe::cuda {

// This process among those that a launcher started, one for each rank.
struct Launch {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;   // among those of its machine: which GPU it takes
  std::string address;  // where the ranks meet, as of `Socket`
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
// where no launcher started this process. `HARPE_ADDRESS` names another place to meet.
[[nodiscard]] Result<std::optional<Launch>, LaunchError> find_launch(const ReadVariable& read);

}  // namespace harpe::cuda
