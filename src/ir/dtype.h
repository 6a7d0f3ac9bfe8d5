#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace harpe {

enum class DType : std::uint8_t { F32, F16, BF16, F64, F8E4M3, F8E5M2, I8, U8, I32, I64, Bool };

[[nodiscard]] std::int64_t size_in_bytes(DType dtype);
[[nodiscard]] std::string_view print(DType dtype);  // "bf16"
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view text);
[[nodiscard]] bool is_floating(DType dtype);
// Whether leaves can compute with it (f32, bf16, f16, f64).
[[nodiscard]] bool is_computed_in(DType dtype);
// Half the distance from 1 to the next number: the relative error of one rounding. 0 for integers.
[[nodiscard]] double unit_roundoff(DType dtype);
// The smallest normal magnitude: below it roundings no longer shrink with the number.
// The error of any rounding is at most unit_roundoff(t) max(|x|, smallest_normal(t)). 0 for
// integers.
[[nodiscard]] double smallest_normal(DType dtype);
// The type partial states and accumulators have for results of this type: f64 for f64, else f32.
[[nodiscard]] DType state_dtype(DType dtype);

}  // namespace harpe
