#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/cuda/jit/kernel_variant.h"
#include "support/diag.h"

namespace harpe::cuda {

// A header of device code under the name that includes it:
// "exec/cuda/kernels/gemm/device/gemm.cuh".
struct HeaderText {
  std::string_view name;
  std::string_view text;
  friend bool operator==(const HeaderText&, const HeaderText&) = default;
};

// Every header of src/exec/cuda/device, as it was when this program was built.
[[nodiscard]] std::span<const HeaderText> device_headers();

// A translation unit with all it includes, directly or not: what a compiler needs, and no more, so
// that a kernel's identity does not change with headers it never sees.
struct KernelSource {
  std::string name;                 // of the variant
  std::string text;                 // what is compiled
  std::vector<HeaderText> headers;  // in order of their first inclusion; views of the given ones
};

// Follows `#include "…"`; every such name must be one of `headers`. Errors: G010.
[[nodiscard]] Checked<KernelSource> assemble(const KernelVariant& variant,
                                             std::span<const HeaderText> headers);

// All texts with their names and lengths, so that no two sources print alike.
[[nodiscard]] std::string print(const KernelSource& source);

}  // namespace harpe::cuda
