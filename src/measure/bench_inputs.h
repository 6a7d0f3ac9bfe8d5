#pragma once

#include <optional>
#include <string>

#include "ir/program.h"
#include "ir/tensor.h"
#include "plan/plan.h"

namespace harpe {

// Inputs as `run` draws them, but of large ones a block is drawn and repeated: a prime number of
// elements, so that rows differ.
[[nodiscard]] TensorMap draw_bench_inputs(const Program& program, std::uint64_t seed);

// The largest difference of two results of one buffer, relative to the scale of its row; up to 512
// rows, spread evenly. NaN counts as infinite. `is_logarithm`: against 1 or the number itself.
[[nodiscard]] double largest_difference(const HostTensor& got, const HostTensor& wanted,
                                        bool is_logarithm);

// What libraries round beside what a plan does: partial results, to the output's type, at each of
// the ranks. Relative to a row's scale.
[[nodiscard]] double library_margin(const Plan& plan, const std::string& buffer);

// What rounding explains of a difference to a library's result: what our plan may be off, and the
// library's margin.
[[nodiscard]] double bench_bound(const Plan& plan, const std::string& buffer);

}  // namespace harpe
