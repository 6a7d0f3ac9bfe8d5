#include "exec/processes/launch_environment.h"

#include <charconv>

namespace harpe::processes {
namespace {

using Number = Result<int, LaunchError>;

Number number_in(const ReadVariable& read, const std::string& variable) {
  const std::optional<std::string> text = read(variable);
  if (!text) return LaunchError{.variable = variable, .reason = "is not set"};
  int value = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, status] = std::from_chars(text->data(), end, value);
  if (status != std::errc() || stop != end || value < 0) {
    return LaunchError{.variable = variable, .reason = "is `" + *text + "`, which is no number"};
  }
  return value;
}

struct Names {
  std::string rank;
  std::string ranks;
  std::string local_rank;
  std::string local_ranks;  // may be unset: all processes are on one host
};

LaunchError wrong_place(const Launch& launch, const Names& names) {
  return {.variable = names.local_ranks,
          .reason = "is " + std::to_string(launch.local_ranks) + ", and process " +
                    std::to_string(launch.rank) + " of " + std::to_string(launch.ranks) +
                    " is number " + std::to_string(launch.local_rank) +
                    " of its host: hosts must have equally many, one after the other"};
}

// Slurm's "4" or "4(x2)": equal on all hosts.
Result<int, LaunchError> count_on_each(const ReadVariable& read, const std::string& variable) {
  const std::string text = *read(variable);
  const std::string first = text.substr(0, text.find("(x"));
  return number_in([&](const std::string&) { return std::optional(first); }, variable);
}

Result<Launch, LaunchError> read_numbers(const ReadVariable& read, const Names& names) {
  Launch launch;
  HP_TRY(launch.rank, number_in(read, names.rank));
  HP_TRY(launch.ranks, number_in(read, names.ranks));
  HP_TRY(launch.local_rank, number_in(read, names.local_rank));
  if (launch.rank >= launch.ranks) {
    return LaunchError{.variable = names.rank,
                       .reason = "is " + std::to_string(launch.rank) + ", and there are " +
                                 std::to_string(launch.ranks) + " ranks"};
  }
  launch.local_ranks = launch.ranks;
  if (read(names.local_ranks)) {
    HP_TRY(launch.local_ranks, count_on_each(read, names.local_ranks));
    const int each = launch.local_ranks;
    const bool is_placed =
        each > 0 && launch.ranks % each == 0 && launch.local_rank == launch.rank % each;
    if (!is_placed) return wrong_place(launch, names);
  }
  launch.interface = read("HARPE_INTERFACE").value_or("");
  launch.secret = read("HARPE_SECRET").value_or("");
  launch.ranks_by = names.ranks;
  launch.local_ranks_by = names.local_ranks;
  return launch;
}

// MASTER_ADDR and MASTER_PORT, if set. torchrun listens at that port itself, and sets a variable to
// say so; then the next port is ours.
Result<std::optional<std::string>, LaunchError> master(const ReadVariable& read) {
  const std::optional<std::string> host = read("MASTER_ADDR");
  if (!host) return std::optional<std::string>();
  HP_TRY(int port, number_in(read, "MASTER_PORT"));
  if (read("TORCHELASTIC_USE_AGENT_STORE") == "True") ++port;
  if (port < 1 || port > 65535) {
    return LaunchError{.variable = "MASTER_PORT", .reason = "leaves no port to meet at"};
  }
  return std::optional(*host + ":" + std::to_string(port));
}

// The address; its default is a name on this machine that only the processes of this job share.
Result<Launch, LaunchError> with_address(const ReadVariable& read, Launch launch,
                                         const std::string& job) {
  if (const auto address = read("HARPE_ADDRESS")) {
    launch.address = *address;
    return launch;
  }
  HP_TRY(const std::optional<std::string> address, master(read));
  launch.address = address.value_or("unix:@harpe-" + job);
  return launch;
}

Result<Launch, LaunchError> torchrun(const ReadVariable& read) {
  HP_TRY(Launch launch, read_numbers(read, {.rank = "RANK",
                                            .ranks = "WORLD_SIZE",
                                            .local_rank = "LOCAL_RANK",
                                            .local_ranks = "LOCAL_WORLD_SIZE"}));
  if (launch.ranks > 1 && !read("MASTER_ADDR") && !read("HARPE_ADDRESS")) {
    return LaunchError{.variable = "MASTER_ADDR", .reason = "is not set"};
  }
  return with_address(read, launch, "alone");
}

Result<Launch, LaunchError> open_mpi(const ReadVariable& read) {
  HP_TRY(Launch launch, read_numbers(read, {.rank = "OMPI_COMM_WORLD_RANK",
                                            .ranks = "OMPI_COMM_WORLD_SIZE",
                                            .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
                                            .local_ranks = "OMPI_COMM_WORLD_LOCAL_SIZE"}));
  return with_address(
      read, launch,
      "mpi-" + read("PMIX_NAMESPACE").value_or(read("OMPI_MCA_ess_base_jobid").value_or("job")));
}

Result<Launch, LaunchError> slurm(const ReadVariable& read) {
  const bool has_step = read("SLURM_STEP_NUM_TASKS").has_value();
  HP_TRY(Launch launch,
         read_numbers(read, {.rank = "SLURM_PROCID",
                             .ranks = has_step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
                             .local_rank = "SLURM_LOCALID",
                             .local_ranks = "SLURM_STEP_TASKS_PER_NODE"}));
  return with_address(read, launch,
                      "slurm-" + read("SLURM_JOB_ID").value_or("job") + "-" +
                          read("SLURM_STEP_ID").value_or("step"));
}

}  // namespace

Result<std::optional<Launch>, LaunchError> find_launch(const ReadVariable& read) {
  const auto some =
      [](Result<Launch, LaunchError> launch) -> Result<std::optional<Launch>, LaunchError> {
    if (!launch.ok()) return launch.error();
    return std::optional(*launch);
  };
  if (read("WORLD_SIZE")) return some(torchrun(read));
  if (read("OMPI_COMM_WORLD_SIZE")) return some(open_mpi(read));
  // A batch script has a rank and a size too; only a process that srun started has a step.
  if (read("SLURM_PROCID") && read("SLURM_STEP_ID")) return some(slurm(read));
  return std::optional<Launch>();
}

}  // namespace harpe::processes
