#include "exec/cpu/kernels/pointwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <type_traits>
#include <utility>

#include "exec/cpu/kernels/elementwise.h"
#include "support/multiversion.h"

namespace harpe {
namespace {

constexpr std::int64_t kChunk = 512;  // elements worked on at a time, in registers' types

// values[i] = operand[first + i], widened.
template <class Real>
void widen(const PointwiseProblem::Operand& operand, std::int64_t first, std::int64_t n,
           Real* values) {
  constexpr DType kReal = std::is_same_v<Real, double> ? DType::F64 : DType::F32;
  const std::int64_t size = size_in_bytes(operand.dtype);
  const auto* const data = static_cast<const std::byte*>(operand.data);
  if (operand.stride == 1) {
    convert(values, kReal, data + first * size, operand.dtype, n);
    return;
  }
  const std::int64_t turns = operand.stride == 0 ? 1 : n;
  for (std::int64_t i = 0; i < turns; ++i) {
    convert(values + i, kReal, data + (first + i) * operand.stride * size, operand.dtype, 1);
  }
  if (operand.stride == 0) std::fill_n(values, n, values[0]);
}

template <class Real>
void narrow(const PointwiseProblem& p, std::int64_t first, std::int64_t n, const Real* values) {
  constexpr DType kReal = std::is_same_v<Real, double> ? DType::F64 : DType::F32;
  const std::int64_t size = size_in_bytes(p.to_dtype);
  auto* const data = static_cast<std::byte*>(p.to);
  if (p.to_stride == 1) {
    convert(data + first * size, p.to_dtype, values, kReal, n);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    convert(data + (first + i) * p.to_stride * size, p.to_dtype, values + i, kReal, 1);
  }
}

// x / (1 + e^-x). The root of the exponential keeps the quotient where e^-x would overflow.
template <class Real>
[[gnu::always_inline]] inline Real silu(Real x) {
  const Real root = std::exp(-std::abs(x) / 2);
  const Real weight = 1 + root * root;
  return x < 0 ? x * root / weight * root : x / weight;
}

// The weight is halved and not the product, which may overflow.
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
    narrow(p, first, n, a.data());
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
