#pragma once

#include <string>

#include "ir/program.h"
#include "schedule/named/attention_shape.h"
#include "support/diag.h"

namespace harpe {

// The structure of a single GEMM, `c sum= matmul(a, b)`: c[m, n], a[m, k], b[k, n].
struct GemmShape {
  std::string nest;
  std::string a, b, c;
  SizedAxis m, n, k;
};

// Errors: S603.
[[nodiscard]] Checked<GemmShape> read_gemm(const Program& program);

// Such a GEMM, and a nest that adds a residual to its result and normalises the rows:
// `(residual_out, y) = add_rms_norm(c, residual, weight)`.
struct NormShape {
  GemmShape gemm;
  std::string nest;
  std::string residual, residual_out, y;
};

// Errors: S603.
[[nodiscard]] Checked<NormShape> read_normalised_gemm(const Program& program);

}  // namespace harpe
