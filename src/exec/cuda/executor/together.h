#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>

#include "support/diag.h"

namespace harpe::cuda {

// The first of several parallel bodies that failed, and its error.
struct FirstFailure {
  std::size_t which = 0;
  Diag why;
};

// Runs body(i) for each i below `count` in parallel, each in its own thread, because NCCL's ranks
// must make some calls together. If a body fails or the limit passes, calls `give_up`, after which
// no body may wait for another. Returns when all have ended.
[[nodiscard]] std::optional<FirstFailure> run_together(
    std::size_t count, std::chrono::milliseconds limit,
    const std::function<Checked<Ok>(std::size_t)>& body, const std::function<void()>& give_up);

}  // namespace harpe::cuda
