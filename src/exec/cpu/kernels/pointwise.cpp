#include "exec/cpu/kernels/pointwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "exec/cpu/kernels/widened.h"
#include "support/multiversion.h"

namespace harpe {
namespace {

constexpr std::int64_t kChunk = 512;  // elements processed at a time, in f32 or f64

template <class Real>
void widen(const PointwiseProblem::Operand& operand, std::int64_t first, std::int64_t n,
           Real* values) {
  widen(operand.data, operand.dtype, operand.stride, first, n, values);
}

// x / (1 + e^-x). With the root of the exponential the quotient is right where e^-x would overflow.
template <class Real>
[[gnu::always_inline]] inline Real silu(Real x) {
  const Real root = std::exp(-std::abs(x) / 2);
  const Real weight = 1 + root * root;
  return x < 0 ? x * root / weight * root : x / weight;
}

// Halves the weight, not the product, because the product may overflow.
template <class Real>
[[gnu::always_inline]] inline Real gelu(Real x) {
  return x * (std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2);
}

template <class Real>
[[gnu::always_inline]] inline void evaluate(const PointwiseProblem& p, Real* __restrict a,
                                            const Real* __restrict b, std::int64_t n) {
  const auto each = [&](const auto& function) {
    for (std::int64_t i = 0; i < n; ++i) a[i] = function(a[i], b[i]);
  };
  switch (p.function) {
    case Pointwise::Silu:
      return each([](Real x, Real) { return silu(x); });
    case Pointwise::Relu:
      return each([](Real x, Real) { return x < 0 ? Real(0) : x; });
    case Pointwise::Gelu:
      return each([](Real x, Real) { return gelu(x); });
    case Pointwise::Add:
      return each([](Real x, Real y) { return x + y; });
    case Pointwise::Mul:
      return each([](Real x, Real y) { return x * y; });
    case Pointwise::SiluMul:
      return each([](Real x, Real y) { return silu(x) * y; });
    case Pointwise::RmsScale:
      return each([&](Real x, Real y) {
        return x / std::sqrt(y / static_cast<Real>(p.features) + static_cast<Real>(p.epsilon));
      });
  }
}

HP_CLONES void evaluate_f32(const PointwiseProblem& p, float* a, const float* b, std::int64_t n) {
  evaluate(p, a, b, n);
}
HP_CLONES void evaluate_f64(const PointwiseProblem& p, double* a, const double* b, std::int64_t n) {
  evaluate(p, a, b, n);
}

template <class Real>
void apply_in(const PointwiseProblem& p,
              void (*function)(const PointwiseProblem&, Real*, const Real*, std::int64_t)) {
  std::array<Real, kChunk> a;
  std::array<Real, kChunk> b{};
  for (std::int64_t first = 0; first < p.length; first += kChunk) {
    const std::int64_t n = std::min(kChunk, p.length - first);
    widen(p.a, first, n, a.data());
    if (p.b.data != nullptr) widen(p.b, first, n, b.data());
    function(p, a.data(), b.data(), n);
    narrow(p.to, p.to_dtype, p.to_stride, first, n, a.data());
  }
}

}  // namespace

void apply_pointwise(const PointwiseProblem& problem) {
  const bool wide =
      problem.a.dtype == DType::F64 || (problem.b.data != nullptr && problem.b.dtype == DType::F64);
  if (wide) return apply_in<double>(problem, &evaluate_f64);
  apply_in<float>(problem, &evaluate_f32);
}

}  // namespace harpe
