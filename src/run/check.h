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

// What a program means for its inputs (already rounded to the buffers' dtypes): of large programs
// sampled rows, with both sides of every block border of the plans' row axes.
struct Reference {
  Meaning meaning;
  Magnitudes magnitudes;
  bool sampled = false;
};
// Requires: plans of one program. Errors: interpret's, with I505 where `limit` is over; those of
// Blocks::make.
[[nodiscard]] Checked<Reference> make_reference(const std::vector<const Plan*>& plans,
                                                const TensorMap& inputs, std::uint64_t seed,
                                                int threads, const TimeLimit& limit = {});

// Compares outputs of one of the plans, all or some.
// The scale of a row is the largest size in it: an element's magnitude in the reference, or
// Meaning::scales where that is more. Cancellation, in the sum or before it, makes no error larger.
[[nodiscard]] CheckReport compare_outputs(const Plan& plan, const TensorMap& outputs,
                                          const Reference& reference);

// The same for one plan alone. Errors: make_reference's.
[[nodiscard]] Checked<CheckReport> check_outputs(const Plan& plan, const TensorMap& inputs,
                                                 const TensorMap& outputs, std::uint64_t seed,
                                                 int threads, const TimeLimit& limit = {});

// The first comparison that failed, as I401. Requires: one failed.
[[nodiscard]] Diag failure_of(const CheckReport& report);

}  // namespace harpe
