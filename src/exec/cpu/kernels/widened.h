#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "exec/cpu/kernels/elementwise.h"
#include "ir/dtype.h"

namespace harpe {

template <class Real>
constexpr DType kRealType = std::is_same_v<Real, double> ? DType::F64 : DType::F32;

// values[i] = element first + i of numbers with stride `stride`, widened; with stride 0 the single
// number.
template <class Real>
void widen(const void* data, DType dtype, std::int64_t stride, std::int64_t first, std::int64_t n,
           Real* values) {
  const std::int64_t size = size_in_bytes(dtype);
  const auto* const bytes = static_cast<const std::byte*>(data);
  if (stride == 1) {
    convert(values, kRealType<Real>, bytes + first * size, dtype, n);
    return;
  }
  const std::int64_t turns = stride == 0 ? 1 : n;
  for (std::int64_t i = 0; i < turns; ++i) {
    convert(values + i, kRealType<Real>, bytes + (first + i) * stride * size, dtype, 1);
  }
  if (stride == 0) std::fill_n(values, n, values[0]);
}

// The inverse, each number rounded once.
template <class Real>
void narrow(void* data, DType dtype, std::int64_t stride, std::int64_t first, std::int64_t n,
            const Real* values) {
  const std::int64_t size = size_in_bytes(dtype);
  auto* const bytes = static_cast<std::byte*>(data);
  if (stride == 1) {
    convert(bytes + first * size, dtype, values, kRealType<Real>, n);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    convert(bytes + (first + i) * stride * size, dtype, values + i, kRealType<Real>, 1);
  }
}

}  // namespace harpe
