#pragma once

#include <span>

#include "schedule/named/registry.h"

namespace harpe {

// Homes follow the operator's contract, over all mesh axes, major first:
//   gemm     a and c by rows (m), b by columns (n); grid2d: all three in two dimensions
//   ag_gemm  a by rows, b and c by columns: the activations are gathered
//   gemm_rs  a and b by the reduced axis (k), c by rows: the partial sums are reduced
//   gemm_ar  a and b by the reduced axis, c replicated
//   gemm_ar_norm  a and b by the reduced axis, all else replicated; scattered: the residual input
//                 and output by rows (m)
// One-level schedules treat all mesh axes as one. Two-level schedules use the first axis, and the
// others as one; they factor a mesh of one axis.
[[nodiscard]] std::span<const NamedSchedule> gemm_schedules();
[[nodiscard]] std::span<const NamedSchedule> ag_gemm_schedules();
[[nodiscard]] std::span<const NamedSchedule> gemm_rs_schedules();
[[nodiscard]] std::span<const NamedSchedule> gemm_ar_schedules();
[[nodiscard]] std::span<const NamedSchedule> gemm_ar_norm_schedules();

}  // namespace harpe
