#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/processes/launch_environment.h"
#include "support/diag.h"

namespace harpe::cli {

// What the environment says: the one place that reads it, and that sets anything in it.

// Before the first thread: OpenBLAS starts no threads of its own, streams of ranks that share a GPU
// get queues of their own, kernels are loaded whole before any waits, and NCCL goes without
// multicast. Of CUDA and NCCL, what the user has set stays.
void prepare_environment();

// The folder of the plan cache: `given` where there is one, else `$XDG_CACHE_HOME/harpe`, else
// `$HOME/.cache/harpe`. `flag` is what names another. Errors: U152.
[[nodiscard]] Checked<std::string> cache_folder(const std::optional<std::string>& given,
                                                std::string_view flag);

// The same for a flag that may also be `off`: then there is none.
[[nodiscard]] Checked<std::optional<std::string>> cache_of(const std::optional<std::string>& given,
                                                           std::string_view flag);

// Where CUDA's libraries are on this machine, besides the loader's own places: those of
// `$CUDA_HOME`, `$CUDA_PATH` and of an ordinary installation.
[[nodiscard]] std::vector<std::string> cuda_folders();

// Where NCCL, cuBLASLt and cuDNN may be besides the loader's places: folders of the list (commas
// between), else of `HARPE_LIBRARIES`; then those of Python packages.
[[nodiscard]] std::vector<std::string> library_folders(const std::optional<std::string>& given);

// What a launcher says that started this process as one of several; none where no launcher did, or
// for one process alone. Errors: N016.
[[nodiscard]] Checked<std::optional<processes::Launch>> launch_of_environment();

// `HARPE_SECRET`, which processes that meet share; "" where it is not set.
[[nodiscard]] std::string secret_of_environment();

}  // namespace harpe::cli
