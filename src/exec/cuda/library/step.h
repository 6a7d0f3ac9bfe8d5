#pragma once

#include <functional>
#include <string_view>

#include "exec/cuda/driver_api.h"
#include "support/diag.h"

namespace harpe::library {

// Orders something in a stream of the calling thread's GPU.
using Step = std::function<Checked<Ok>(CUstream stream)>;

// G080, of a call that a library had agreed to when it was made ready.
[[nodiscard]] inline Diag refused(std::string_view call, std::string_view library) {
  return make_diag(
      DiagCode::G080,
      {{"call", call}, {"library", library}, {"reason", "it refused what it had agreed to"}});
}

}  // namespace harpe::library
