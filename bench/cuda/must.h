#pragma once

#include <string>
#include <utility>

#include "exec/cuda/runtime/driver_api.h"
#include "support/diag.h"

namespace harpe::bench {

// Prints and ends the program with exit code 3.
[[noreturn]] void give_up(const std::string& reason);

// Returns the value or ends the program: the harness cannot report an error to a caller.
template <class T>
T must(Checked<T> result) {
  if (!result.ok()) give_up(render(result.error()));
  return std::move(result).value();
}

template <class T>
T must(Result<T, cuda::CudaError> result) {
  if (!result.ok()) give_up(render(cuda::to_diag(result.error())));
  return std::move(result).value();
}

}  // namespace harpe::bench
