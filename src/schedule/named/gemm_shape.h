#pragma once

#include <string>

#include "ir/program.h"
#include "schedule/named/attention_shape.h"
#include "support/diag.h"

namespace harpe {

// The one statement of a matrix product, `c sum= matmul(a, b)`: c[m, n], a[m, k], b[k, n].
struct GemmShape {
  std::string nest;
  std::string a, b, c;
  SizedAxis m, n, k;
};

// Errors: S603.
[[nodiscard]] Checked<GemmShape> read_gemm(const Program& program);

}  // namespace harpe
