#pragma once

#include <string>

#include "ir/dtype.h"

namespace harpe {

// "AMD EPYC, 2 cores", as the system reports.
[[nodiscard]] std::string describe_host();
// The library for GEMMs of this type on CPU ranks: "oneDNN as f32", "own loops".
[[nodiscard]] std::string name_products(DType dtype, bool uses_libraries);

}  // namespace harpe
