#include "exec/cpu/kernels/gemm.h"

#include <algorithm>
#include <string>

#include "exec/cpu/kernels/gemm_dense.h"
#include "exec/cpu/kernels/panel.h"
#include "exec/cpu/kernels/scratch.h"
#include "support/check.h"

namespace harpe {
namespace {

// Panels of operands that must be widened: B's panel stays in the L2 cache while A streams past.
constexpr std::int64_t kPanelRows = 256;
constexpr std::int64_t kPanelColumns = 512;
constexpr std::int64_t kPanelDepth = 512;

template <class C>
C* at(void* c, std::int64_t row_stride, std::int64_t row, std::int64_t column) {
  return static_cast<C*>(c) + row * row_stride + column;
}

// For operands that the kernels cannot use in place: of another type, or with overlapping rows.
template <class T>
void multiply_panels(const GemmProblem& p) {
  const std::int64_t depth = std::min(p.k, kPanelDepth);
  T* memory_a = scratch_of<T>(Scratch::PanelA, std::min(p.m, kPanelRows) * depth);
  T* memory_b = scratch_of<T>(Scratch::PanelB, std::min(p.n, kPanelColumns) * depth);
  for (std::int64_t kk = 0; kk < p.k; kk += kPanelDepth) {
    const std::int64_t k = std::min(kPanelDepth, p.k - kk);
    for (std::int64_t j = 0; j < p.n; j += kPanelColumns) {
      const std::int64_t n = std::min(kPanelColumns, p.n - j);
      const DenseView<T> b = pack(part(p.b, kk, j), k, n, memory_b);
      for (std::int64_t i = 0; i < p.m; i += kPanelRows) {
        const std::int64_t m = std::min(kPanelRows, p.m - i);
        multiply_dense(DenseGemm<T, T>{.m = m,
                                       .n = n,
                                       .k = k,
                                       .a = pack(part(p.a, i, kk), m, k, memory_a),
                                       .b = b,
                                       .c = at<T>(p.c, p.c_row_stride, i, j),
                                       .c_row_stride = p.c_row_stride,
                                       .accumulate = p.accumulate || kk > 0},
                       p.products);
      }
    }
  }
}

// Returns false, without effect, if an operand's layout does not fit the kernels.
template <class T, class C>
bool multiply_in_place(const GemmProblem& p) {
  const DenseView<T> a = as_dense<T>(p.a, p.m, p.k);
  const DenseView<T> b = as_dense<T>(p.b, p.k, p.n);
  if (a.data == nullptr || b.data == nullptr) return false;
  multiply_dense(DenseGemm<T, C>{.m = p.m,
                                 .n = p.n,
                                 .k = p.k,
                                 .a = a,
                                 .b = b,
                                 .c = static_cast<C*>(p.c),
                                 .c_row_stride = p.c_row_stride,
                                 .accumulate = p.accumulate},
                 p.products);
  return true;
}

template <class C>
void fill_zero(const GemmProblem& p) {
  for (std::int64_t row = 0; row < p.m; ++row) {
    std::fill_n(at<C>(p.c, p.c_row_stride, row, 0), p.n, C{0});
  }
}

}  // namespace

void multiply(const GemmProblem& problem) {
  GemmProblem p = problem;
  if (p.m == 1) p.c_row_stride = std::max(p.c_row_stride, p.n);  // never used, but checked
  HP_CHECK(p.a.dtype == p.b.dtype, "operands of two types, `" + std::string(print(p.a.dtype)) +
                                       "` and `" + std::string(print(p.b.dtype)) + "`");
  HP_CHECK(p.m <= 1 || p.c_row_stride >= p.n, "rows of the result overlap");
  if (p.m <= 0 || p.n <= 0) return;
  const bool f64 = p.a.dtype == DType::F64;
  if (p.k <= 0) {
    if (p.accumulate) return;
    return f64 ? fill_zero<double>(p) : fill_zero<float>(p);
  }
  if (f64) {
    if (!multiply_in_place<double, double>(p)) multiply_panels<double>(p);
    return;
  }
  const bool in_place =
      (p.a.dtype == DType::F32 && multiply_in_place<float, float>(p)) ||
      (p.a.dtype == DType::BF16 && gemm_backend(DType::BF16, p.products).operands == DType::BF16 &&
       multiply_in_place<std::uint16_t, float>(p));
  if (!in_place) multiply_panels<float>(p);
}

}  // namespace harpe
