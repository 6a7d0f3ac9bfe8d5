#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/interpret.h"
#include "ir/tensor.h"
#include "plan/plan.h"
#include "run/bound.h"
#include "support/diag.h"
#include "support/time_limit.h"

namespace harpe {

// Programs with more floating-point operations are checked on sampled rows.
constexpr double kFullCheckFlops = 2e11;
constexpr std::int64_t kSampledRows = 256;

// One output against the independent reference.
struct Comparison {
  std::string buffer;
  double error = 0;  // largest |got - wanted| relative to its row's scale; inf if one is NaN
  double bound = 0;  // the permitted error
  ErrorBound terms;  // the parts of the bound
  std::vector<std::int64_t> at;  // index of the largest error
  double got = 0;
  double wanted = 0;
  std::int64_t rows = 0;     // in the tensor
  std::int64_t checked = 0;  // number of checked rows
  [[nodiscard]] bool passed() const { return error <= bound; }
};

struct CheckReport {
  std::vector<Comparison> outputs;
  bool sampled = false;
  [[nodiscard]] bool passed() const;
};

// The meaning of a program for its inputs (already rounded to the buffers' dtypes). Large programs:
// sampled rows, and both sides of every block border of the plans' row axes.
struct Reference {
  Meaning meaning;
  Magnitudes magnitudes;
  bool sampled = false;
};
// Requires: plans of one program. Errors: those of interpret, with I505 past `limit`; those of
// Blocks::make.
[[nodiscard]] Checked<Reference> make_reference(const std::vector<const Plan*>& plans,
                                                const TensorMap& inputs, std::uint64_t seed,
                                                int threads, const TimeLimit& limit = {});

// Compares all or some outputs of one of the plans. The scale of a row is the largest size in it:
// an element's magnitude in the reference, or Meaning::scales if that is larger. Cancellation, in
// the sum or before it, therefore does not increase an error.
[[nodiscard]] CheckReport compare_outputs(const Plan& plan, const TensorMap& outputs,
                                          const Reference& reference);

// The same for a single plan. Errors: those of make_reference.
[[nodiscard]] Checked<CheckReport> check_outputs(const Plan& plan, const TensorMap& inputs,
                                                 const TensorMap& outputs, std::uint64_t seed,
                                                 int threads, const TimeLimit& limit = {});

// The first comparison that failed, as I401. Requires: one failed.
[[nodiscard]] Diag failure_of(const CheckReport& report);

}  // namespace harpe
