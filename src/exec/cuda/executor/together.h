#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>

#include "support/diag.h"

namespace harpe::cuda {

// Who failed first of several, and of what.
struct FirstFailure {
  std::size_t which = 0;
  Diag why;
};

// body(i) for each i below `count`, each in a thread of its own, as NCCL wants what its ranks do
// together. Once one fails, or the limit passes, `give_up` is called, after which none of them may
// wait for another. Returns when all are over.
[[nodiscard]] std::optional<FirstFailure> run_together(
    std::size_t count, std::chrono::milliseconds limit,
    const std::function<Checked<Ok>(std::size_t)>& body, const std::function<void()>& give_up);

}  // namespace harpe::cuda
