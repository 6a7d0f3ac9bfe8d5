#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/processes/launch_environment.h"
#include "support/diag.h"

namespace harpe::cli {

// Access to the environment: the only code that reads it or sets variables in it.

// Call before the first thread starts. OpenBLAS starts no threads of its own, streams of ranks that
// share a GPU get separate queues, kernels are loaded completely before any kernel waits, and NCCL
// does without multicast. Settings of CUDA and NCCL by the user are kept.
void prepare_environment();

// The folder of the plan cache: `given` if present, else `$XDG_CACHE_HOME/harpe`, else
// `$HOME/.cache/harpe`. `flag` is the flag that names another. Errors: U152.
[[nodiscard]] Checked<std::string> cache_folder(const std::optional<std::string>& given,
                                                std::string_view flag);

// The same for a flag that may also be `off`, which means no folder.
[[nodiscard]] Checked<std::optional<std::string>> cache_of(const std::optional<std::string>& given,
                                                           std::string_view flag);

// Folders of CUDA's libraries on this machine, besides the loader's own: those of `$CUDA_HOME`,
// `$CUDA_PATH` and of a default installation.
[[nodiscard]] std::vector<std::string> cuda_folders();

// Folders in which NCCL, cuBLASLt and cuDNN may be, besides the loader's: the comma-separated list,
// or else `HARPE_LIBRARIES`; then those of Python packages.
[[nodiscard]] std::vector<std::string> library_folders(const std::optional<std::string>& given);

// The launcher's settings, if it started this process as one of several; none without a launcher,
// or for a single process. Errors: N016.
[[nodiscard]] Checked<std::optional<processes::Launch>> launch_of_environment();

// `HARPE_SECRET`, which the processes of a rendezvous share; "" if it is not set.
[[nodiscard]] std::string secret_of_environment();

}  // namespace harpe::cli
