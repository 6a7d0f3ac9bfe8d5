#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/bound.h"
#include "ir/tensor.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe {

// Above this many floating-point operations rows are sampled.
constexpr double kFullCheckFlops = 2e11;
constexpr std::int64_t kSampledRows = 256;

// One output against the independent reference.
struct Comparison {
  std::string buffer;
  double error =
      0;  // largest |got - wanted| relative to the scale of its row; inf where one is NaN
  double bound = 0;              // what it was held to
  ErrorBound terms;              // what the bound is made of
  std::vector<std::int64_t> at;  // index of the largest error
  double got = 0;
  double wanted = 0;
  std::int64_t rows = 0;     // in the tensor
  std::int64_t checked = 0;  // of these
  [[nodiscard]] bool passed() const { return error <= bound; }
};

struct CheckReport {
  std::vector<Comparison> outputs;
  bool sampled = false;
  [[nodiscard]] bool passed() const;
};

// Compares the outputs of `plan` with what its program means for `inputs` (already rounded to the
// buffers' dtypes). Sampled rows include both sides of every block border of the row axis.
// The scale of a row is the largest magnitude in its reference, but no less than what independent
// terms of the operands' size would sum to (Meaning::scales where the leaf says, else RowScale):
// cancellation does not make an error larger.
[[nodiscard]] Checked<CheckReport> check_outputs(const Plan& plan, const TensorMap& inputs,
                                                 const TensorMap& outputs, std::uint64_t seed,
                                                 int threads);

// The first comparison that failed, as I401. Requires: one failed.
[[nodiscard]] Diag failure_of(const CheckReport& report);

}  // namespace harpe
