#pragma once

#include "bench/cuda/options.h"

namespace harpe::bench {

// Compiles every kernel that an experiment may launch into the folder of `--cache`, on all cores,
// without a GPU. Returns 1 if one does not compile.
[[nodiscard]] int compile_all(const Options& options);

}  // namespace harpe::bench
