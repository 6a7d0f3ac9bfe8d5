#pragma once

#include <functional>

#include "exec/cuda/driver_api.h"
#include "support/diag.h"

namespace harpe::library {

// Orders something in a stream of the calling thread's GPU.
using Step = std::function<Checked<Ok>(CUstream stream)>;

}  // namespace harpe::library
