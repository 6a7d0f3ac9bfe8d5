#pragma once

#include <memory>

#include "exec/cuda/kernels/prepared_kernel.h"
#include "exec/cuda/library/step.h"

namespace harpe::cuda {

// A function that enqueues a library's work, and the names for errors about it.
struct LibraryOrder {
  library::Step order;
  const char* library;
  const char* call;
  bool meets_others = false;
};

[[nodiscard]] std::unique_ptr<PreparedKernel> prepare_order(LibraryOrder order);

}  // namespace harpe::cuda
