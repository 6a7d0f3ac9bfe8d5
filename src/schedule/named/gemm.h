#pragma once

#include <span>

#include "schedule/named/registry.h"

namespace harpe {

// Homes are the operator's contract, with every mesh axis used, major first:
//   gemm     a and c by rows (m), b by columns (n); grid2d: all three in two dimensions
//   ag_gemm  a by rows, b and c by columns: the activations are gathered
//   gemm_rs  a and b by the reduced axis (k), c by rows: the partial products are reduced
//   gemm_ar  a and b by the reduced axis, c replicated
//   gemm_ar_norm  a and b by the reduced axis, all else replicated; scattered: the residual, before
//            and after, by rows (m)
// One-level schedules see all mesh axes as one; two-level ones take the first axis and the others
// as one, and factor a mesh of one axis.
[[nodiscard]] std::span<const NamedSchedule> gemm_schedules();
[[nodiscard]] std::span<const NamedSchedule> ag_gemm_schedules();
[[nodiscard]] std::span<const NamedSchedule> gemm_rs_schedules();
[[nodiscard]] std::span<const NamedSchedule> gemm_ar_schedules();
[[nodiscard]] std::span<const NamedSchedule> gemm_ar_norm_schedules();

}  // namespace harpe
