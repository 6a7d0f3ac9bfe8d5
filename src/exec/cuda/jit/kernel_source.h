#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/cuda/jit/kernel_variant.h"
#include "support/diag.h"

namespace harpe::cuda {

// A header of device code and the name under which it is included:
// "exec/cuda/kernels/gemm/device/gemm.cuh".
struct HeaderText {
  std::string_view name;
  std::string_view text;
  friend bool operator==(const HeaderText&, const HeaderText&) = default;
};

// Every header of src/exec/cuda/device, as of this program's build.
[[nodiscard]] std::span<const HeaderText> device_headers();

// A translation unit with all headers that it includes, directly or not, and no others: headers
// that a kernel does not use do not change its identity.
struct KernelSource {
  std::string name;                 // of the variant
  std::string text;                 // the compiled text
  std::vector<HeaderText> headers;  // by first inclusion; views of the given ones
};

// Follows `#include "…"`; every such name must be in `headers`. Errors: G010.
[[nodiscard]] Checked<KernelSource> assemble(const KernelVariant& variant,
                                             std::span<const HeaderText> headers);

// All texts with their names and lengths, so that different sources print differently.
[[nodiscard]] std::string print(const KernelSource& source);

}  // namespace harpe::cuda
