#pragma once

#include "exec/cuda/device/fast_math.cuh"
#include "exec/cuda/device/numbers.cuh"

// Functions of one number, for all kernels that apply them.
namespace harpe::device {

HP_DEVICE float square_root(float x) { return sqrtf(x); }
HP_DEVICE double square_root(double x) { return sqrt(x); }
HP_DEVICE float error_complement(float x) { return erfcf(x); }
HP_DEVICE double error_complement(double x) { return erfc(x); }

HP_DEVICE float magnitude(float x) { return fabsf(x); }
HP_DEVICE double magnitude(double x) { return fabs(x); }

// x / (1 + e^-x). With the root of the exponential the quotient is right where e^-x would overflow.
template <class Real>
HP_DEVICE Real silu(Real x) {
  const Real root = exponential(-magnitude(x) / 2);
  const Real weight = 1 + root * root;
  return x < 0 ? x * root / weight * root : x / weight;
}

// Halves the weight, not the product, because the product may overflow.
template <class Real>
HP_DEVICE Real gelu(Real x) {
  return x * (error_complement(-x / Real(1.4142135623730950488)) / 2);
}

// gelu with a relative error below 2^-16, for results that are rounded to 16 bits: a third of the
// instructions. With z = |x| / sqrt(2) and t = 1 / (1 + z / 2), erfc(z) is t e^(-z^2 + p(t)), where
// p is a polynomial of degree 9 (Numerical Recipes, 6.2); here in base 2, and halved.
HP_DEVICE float gelu_of_16_bits(float x) {
  constexpr float kPolynomial[] = {0.246517298F, -1.18611495F, 2.14747446F,  -1.63775315F,
                                   0.402321582F, -0.26875686F, 0.139630057F, 0.539700616F,
                                   1.4427292F,   -2.82574822F};
  const float t = reciprocal_fast(fmaf(fabsf(x), 0.35355339F, 1.0F));
  float exponent = kPolynomial[0];
#pragma unroll
  for (int i = 1; i < 10; ++i) exponent = fmaf(exponent, t, kPolynomial[i]);
  const float tail = t * exp2_fast(fmaf(x * x, -0.72134752F, exponent));
  return x * (x < 0 ? tail : 1.0F - tail);
}

}  // namespace harpe::device
