#pragma once

#include <memory>

#include "exec/cuda/kernels/prepared_kernel.h"
#include "exec/cuda/library/step.h"

namespace harpe::cuda {

// What orders a library's work, and what a refusal of it is said of.
struct LibraryOrder {
  library::Step order;
  const char* library;
  const char* call;
  bool meets_others = false;
};

[[nodiscard]] std::unique_ptr<PreparedKernel> prepare_order(LibraryOrder order);

}  // namespace harpe::cuda
