#pragma once

#include "exec/cuda/device/numbers.cuh"

// Functions of one number, for all kernels that apply them.
namespace harpe::device {

HP_DEVICE float square_root(float x) { return sqrtf(x); }
HP_DEVICE double square_root(double x) { return sqrt(x); }
HP_DEVICE float error_complement(float x) { return erfcf(x); }
HP_DEVICE double error_complement(double x) { return erfc(x); }

HP_DEVICE float magnitude(float x) { return fabsf(x); }
HP_DEVICE double magnitude(double x) { return fabs(x); }

// x / (1 + e^-x). The root of the exponential keeps the quotient where e^-x would overflow.
template <class Real>
HP_DEVICE Real silu(Real x) {
  const Real root = exponential(-magnitude(x) / 2);
  const Real weight = 1 + root * root;
  return x < 0 ? x * root / weight * root : x / weight;
}

// The weight is halved and not the product, which may overflow.
template <class Real>
HP_DEVICE Real gelu(Real x) {
  return x * (error_complement(-x / Real(1.4142135623730950488)) / 2);
}

}  // namespace harpe::device
