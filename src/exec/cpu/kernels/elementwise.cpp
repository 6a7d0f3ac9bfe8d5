#include "exec/cpu/kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "exec/cpu/kernels/element_types.h"
#include "support/check.h"
#include "support/multiversion.h"

namespace harpe {
namespace {

HP_CLONES void convert_elements(void* dst, DType dst_dtype, const void* src, DType src_dtype,
                                std::int64_t n) {
  with_stored(src_dtype, [&]<class From>(From) __attribute__((always_inline)) {
    with_stored(dst_dtype, [&]<class To>(To) __attribute__((always_inline)) {
      const auto* __restrict from = static_cast<const typename From::Bits*>(src);
      auto* __restrict to = static_cast<typename To::Bits*>(dst);
      for (std::int64_t i = 0; i < n; ++i) to[i] = To::narrow(From::widen(from[i]));
    });
  });
}

template <class Real>
[[gnu::always_inline]] inline void add_elements(Real* __restrict state, const void* src,
                                                DType src_dtype, std::int64_t n) {
  with_stored(src_dtype, [&]<class From>(From) __attribute__((always_inline)) {
    const auto* __restrict from = static_cast<const typename From::Bits*>(src);
    for (std::int64_t i = 0; i < n; ++i) state[i] += static_cast<Real>(From::widen(from[i]));
  });
}

template <class Real>
[[gnu::always_inline]] inline void add_scaled_elements(Real* __restrict state, Real scale,
                                                       const void* src, DType src_dtype,
                                                       std::int64_t n) {
  with_stored(src_dtype, [&]<class From>(From) __attribute__((always_inline)) {
    const auto* __restrict from = static_cast<const typename From::Bits*>(src);
    for (std::int64_t i = 0; i < n; ++i)
      state[i] += scale * static_cast<Real>(From::widen(from[i]));
  });
}

HP_CLONES void add_scaled_f32(float* state, float scale, const void* src, DType src_dtype,
                              std::int64_t n) {
  add_scaled_elements(state, scale, src, src_dtype, n);
}
HP_CLONES void add_scaled_f64(double* state, double scale, const void* src, DType src_dtype,
                              std::int64_t n) {
  add_scaled_elements(state, scale, src, src_dtype, n);
}

HP_CLONES void add_f32(float* state, const void* src, DType src_dtype, std::int64_t n) {
  add_elements(state, src, src_dtype, n);
}
HP_CLONES void add_f64(double* state, const void* src, DType src_dtype, std::int64_t n) {
  add_elements(state, src, src_dtype, n);
}

template <class Real>
struct LseRows {
  Real* o;
  std::int64_t o_row_stride;
  Real* lse;
  std::int64_t lse_stride;
  const Real* o2;
  std::int64_t o2_row_stride;
  const Real* lse2;
  std::int64_t lse2_stride;
  std::int64_t rows;
  std::int64_t value_dim;
};

template <class Real>
[[gnu::always_inline]] inline void combine_rows(const LseRows<Real>& p) {
  constexpr Real kNone = -std::numeric_limits<Real>::infinity();
  for (std::int64_t row = 0; row < p.rows; ++row) {
    Real& lse = p.lse[row * p.lse_stride];
    const Real lse2 = p.lse2[row * p.lse2_stride];
    Real* __restrict o = p.o + row * p.o_row_stride;
    const Real* __restrict o2 = p.o2 + row * p.o2_row_stride;
    if (lse2 == kNone) continue;
    if (lse == kNone) {
      std::copy_n(o2, p.value_dim, o);
      lse = lse2;
      continue;
    }
    // With d = lse2 - lse the weights are 1 / (1 + e^d) and 1 / (1 + e^-d). Computed from e^-|d|,
    // which cannot overflow. In f64, because a row's value_dim elements share them.
    const double difference = static_cast<double>(lse2) - static_cast<double>(lse);
    const double e = std::exp(-std::fabs(difference));
    const double larger = 1.0 / (1.0 + e);
    const Real weight = static_cast<Real>(difference > 0 ? e * larger : larger);
    const Real weight2 = static_cast<Real>(difference > 0 ? larger : e * larger);
    lse = static_cast<Real>(static_cast<double>(difference > 0 ? lse2 : lse) + std::log1p(e));
    for (std::int64_t i = 0; i < p.value_dim; ++i) o[i] = o[i] * weight + o2[i] * weight2;
  }
}

HP_CLONES void combine_f32(const LseRows<float>& rows) { combine_rows(rows); }
HP_CLONES void combine_f64(const LseRows<double>& rows) { combine_rows(rows); }

}  // namespace

void convert(void* dst, DType dst_dtype, const void* src, DType src_dtype, std::int64_t n) {
  if (n <= 0) return;
  if (dst_dtype == src_dtype) {
    std::memcpy(dst, src, static_cast<std::size_t>(n * size_in_bytes(dst_dtype)));
  } else {
    convert_elements(dst, dst_dtype, src, src_dtype, n);
  }
}

void add(void* state, DType state_dtype, const void* src, DType src_dtype, std::int64_t n) {
  if (state_dtype == DType::F64) return add_f64(static_cast<double*>(state), src, src_dtype, n);
  HP_CHECK(state_dtype == DType::F32, "a state of `" + std::string(print(state_dtype)) + "`");
  add_f32(static_cast<float*>(state), src, src_dtype, n);
}

void add_scaled(void* state, DType state_dtype, double scale, const void* src, DType src_dtype,
                std::int64_t n) {
  if (state_dtype == DType::F64) {
    return add_scaled_f64(static_cast<double*>(state), scale, src, src_dtype, n);
  }
  HP_CHECK(state_dtype == DType::F32, "a state of `" + std::string(print(state_dtype)) + "`");
  add_scaled_f32(static_cast<float*>(state), static_cast<float>(scale), src, src_dtype, n);
}

void fill(void* dst, DType dtype, double value, std::int64_t n) {
  with_stored(dtype, [&]<class To>(To) {
    std::fill_n(static_cast<typename To::Bits*>(dst), n, To::narrow(value));
  });
}

void lse_combine(void* o, std::int64_t o_row_stride, void* lse, std::int64_t lse_stride,
                 const void* o2, std::int64_t o2_row_stride, const void* lse2,
                 std::int64_t lse2_stride, std::int64_t rows, std::int64_t value_dim,
                 DType state_dtype) {
  const auto combine = [&]<class Real>(void (*function)(const LseRows<Real>&)) {
    function({.o = static_cast<Real*>(o),
              .o_row_stride = o_row_stride,
              .lse = static_cast<Real*>(lse),
              .lse_stride = lse_stride,
              .o2 = static_cast<const Real*>(o2),
              .o2_row_stride = o2_row_stride,
              .lse2 = static_cast<const Real*>(lse2),
              .lse2_stride = lse2_stride,
              .rows = rows,
              .value_dim = value_dim});
  };
  if (state_dtype == DType::F64) return combine(&combine_f64);
  HP_CHECK(state_dtype == DType::F32, "a state of `" + std::string(print(state_dtype)) + "`");
  combine(&combine_f32);
}

}  // namespace harpe
