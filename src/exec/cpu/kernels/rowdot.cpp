#include "exec/cpu/kernels/rowdot.h"

#include <array>
#include <cstddef>
#include <numeric>

#include "exec/cpu/kernels/element_types.h"

namespace harpe {
namespace {

constexpr std::size_t kChains = 16;  // independent sums, to hide the latency of additions

template <class Stored>
auto dot(const typename Stored::Bits* a, std::int64_t a_stride, const typename Stored::Bits* b,
         std::int64_t b_stride, std::int64_t length) {
  using Real = decltype(Stored::widen(*a));
  std::array<Real, kChains> sums{};
  for (std::int64_t i = 0; i < length; ++i) {
    sums[static_cast<std::size_t>(i) % kChains] +=
        Stored::widen(a[i * a_stride]) * Stored::widen(b[i * b_stride]);
  }
  return std::accumulate(sums.begin(), sums.end(), Real{0});
}

template <class Stored>
void multiply_as(const RowDotProblem& p) {
  using Bits = typename Stored::Bits;
  const auto* a = static_cast<const Bits*>(p.a.data);
  const auto* b = static_cast<const Bits*>(p.b.data);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const auto sum = dot<Stored>(a + row * p.a.row_stride, p.a.stride, b + row * p.b.row_stride,
                                 p.b.stride, p.length);
    with_stored(p.c_dtype, [&](auto stored) {
      using To = decltype(stored);
      static_cast<typename To::Bits*>(p.c)[row * p.c_stride] = To::narrow(sum);
    });
  }
}

}  // namespace

void multiply_rows(const RowDotProblem& problem) {
  with_stored(problem.dtype, [&](auto stored) { multiply_as<decltype(stored)>(problem); });
}

}  // namespace harpe
