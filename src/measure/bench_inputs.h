#pragma once

#include <optional>
#include <string>

#include "ir/program.h"
#include "ir/tensor.h"
#include "plan/plan.h"

namespace harpe {

// Inputs as `run` draws them. For a large input one block is drawn and repeated; it has a prime
// number of elements, so that rows differ.
[[nodiscard]] TensorMap draw_bench_inputs(const Program& program, std::uint64_t seed);

// The largest difference of two results of one buffer, relative to the scale of its row, over at
// most 512 evenly spaced rows. NaN counts as infinite. With `is_logarithm` the scale is the larger
// of 1 and the number itself.
[[nodiscard]] double largest_difference(const HostTensor& got, const HostTensor& wanted,
                                        bool is_logarithm);

// The rounding of libraries beyond the plan's: partial results rounded to the output's type at each
// rank. Relative to a row's scale.
[[nodiscard]] double library_margin(const Plan& plan, const std::string& buffer);

// The difference to a library's result that rounding can explain: the plan's own bound plus the
// library's margin.
[[nodiscard]] double bench_bound(const Plan& plan, const std::string& buffer);

}  // namespace harpe
