#include "exec/cpu/kernels/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "exec/cpu/kernels/gemm_dense.h"
#include "support/check.h"
#include "tests/unit/kernels/matrices.h"

namespace harpe {
namespace gemm_test {

constexpr std::array<std::int64_t, 5> kSizes{1, 3, 17, 65, 129};

struct Case {
  DType dtype = DType::F32;
  std::int64_t m = 1, n = 1, k = 1;
  bool a_transposed = false, b_transposed = false;
  bool accumulate = false;
  std::int64_t gap = 0;
  std::uint64_t seed = 0;
};

std::string describe(const Case& c) {
  return std::string(print(c.dtype)) + " " + std::to_string(c.m) + "x" + std::to_string(c.n) + "x" +
         std::to_string(c.k) + (c.a_transposed ? " at" : "") + (c.b_transposed ? " bt" : "") +
         (c.accumulate ? " accumulate" : "") + " gap " + std::to_string(c.gap) + " seed " +
         std::to_string(c.seed);
}

using Multiply = void (*)(const GemmProblem&);

// The simple loops behind the interface of `multiply`.
void multiply_by_loops(const GemmProblem& p) {
  const auto dense = [&]<class T>(T) {
    const auto view = [](const MatrixView& v) {
      const bool transposed = v.column_stride != 1;
      return DenseView<T>{static_cast<const T*>(v.data),
                          transposed ? v.column_stride : v.row_stride, transposed};
    };
    multiply_loops(DenseGemm<T, T>{p.m, p.n, p.k, view(p.a), view(p.b), static_cast<T*>(p.c),
                                   p.c_row_stride, p.accumulate});
  };
  p.a.dtype == DType::F64 ? dense(double{}) : dense(float{});
}

void run(const Case& c, Multiply function) {
  SCOPED_TRACE(describe(c));
  const Matrix a(c.dtype, c.m, c.k, c.a_transposed, c.gap, c.seed);
  const Matrix b(c.dtype, c.k, c.n, c.b_transposed, c.gap, c.seed + 1);
  const DType state = state_dtype(c.dtype);
  const Matrix before(state, c.m, c.n, false, c.gap, c.seed + 2);
  Matrix out = before;
  function({.m = c.m,
            .n = c.n,
            .k = c.k,
            .a = a.view(),
            .b = b.view(),
            .c = out.data(),
            .c_row_stride = out.row_stride(),
            .accumulate = c.accumulate});
  // Large GEMMs check every 37th element.
  const std::int64_t step = c.m * c.n * c.k > 4'000'000 ? 37 : 1;
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = (i * c.n) % step; j < c.n; j += step) {
      long double sum = c.accumulate ? before.at(i, j) : 0.0;
      double magnitude = c.accumulate ? std::fabs(before.at(i, j)) : 0.0;
      for (std::int64_t p = 0; p < c.k; ++p) {
        sum += static_cast<long double>(a.at(i, p)) * b.at(p, j);
        magnitude += std::fabs(a.at(i, p) * b.at(p, j));
      }
      // For any order of the sum of k products and c: each term has at most k + 1 roundings of the
      // sum and one of its product (none for 16-bit operands). (Higham, 3.1)
      const double roundings = static_cast<double>(c.k + 2) * unit_roundoff(state);
      const double bound = roundings / (1 - roundings) * magnitude;
      ASSERT_LE(std::fabs(static_cast<double>(out.at(i, j) - sum)), bound) << i << ", " << j;
    }
  }
  // Gaps of c keep their values.
  const auto* gap_before = static_cast<const std::byte*>(before.view().data);
  const auto* gap_after = static_cast<const std::byte*>(out.view().data);
  const std::int64_t element = size_in_bytes(state);
  for (std::int64_t i = 0; i < c.m; ++i) {
    const std::int64_t at = (i * before.row_stride() + c.n) * element;
    ASSERT_EQ(
        std::memcmp(gap_before + at, gap_after + at, static_cast<std::size_t>(c.gap * element)), 0);
  }
}

Case draw(std::mt19937_64& random, DType dtype) {
  const auto size = [&] { return kSizes[random() % kSizes.size()]; };
  return {.dtype = dtype,
          .m = size(),
          .n = size(),
          .k = size(),
          .a_transposed = random() % 2 == 0,
          .b_transposed = random() % 2 == 0,
          .accumulate = random() % 2 == 0,
          .gap = static_cast<std::int64_t>(random() % 3) * 5,
          .seed = random()};
}

class Gemm : public testing::TestWithParam<DType> {};

TEST_P(Gemm, is_within_the_summation_bound_for_odd_shapes_strides_and_transposes) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100; ++i) run(draw(random, GetParam()), &multiply);
}

TEST_P(Gemm, is_within_the_bound_across_the_borders_of_its_panels) {
  run({.dtype = GetParam(), .m = 258, .n = 515, .k = 517, .b_transposed = true, .seed = 3},
      &multiply);
}

TEST_P(Gemm, takes_vectors_with_any_stride_along_their_extent_of_one) {
  for (const bool transposed : {false, true}) {
    run({.dtype = GetParam(), .m = 1, .n = 129, .k = 65, .b_transposed = transposed, .gap = 5},
        &multiply);
    run({.dtype = GetParam(), .m = 129, .n = 1, .k = 65, .a_transposed = transposed, .gap = 5},
        &multiply);
    run({.dtype = GetParam(), .m = 65, .n = 129, .k = 1, .a_transposed = transposed, .gap = 5},
        &multiply);
  }
}

TEST_P(Gemm, repeats_a_row_whose_stride_is_zero) {
  const Matrix a(GetParam(), 1, 17, false, 0, 5);
  const Matrix b(GetParam(), 17, 3, false, 0, 6);
  MatrixView repeated = a.view();
  repeated.row_stride = 0;
  Matrix c(state_dtype(GetParam()), 4, 3, false, 0, 7);
  multiply({.m = 4,
            .n = 3,
            .k = 17,
            .a = repeated,
            .b = b.view(),
            .c = c.data(),
            .c_row_stride = 3,
            .accumulate = false});
  Matrix once(state_dtype(GetParam()), 1, 3, false, 0, 8);
  multiply({.m = 1,
            .n = 3,
            .k = 17,
            .a = a.view(),
            .b = b.view(),
            .c = once.data(),
            .c_row_stride = 3,
            .accumulate = false});
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      EXPECT_NEAR(c.at(i, j), once.at(0, j), 17 * 2 * unit_roundoff(DType::F32));
    }
  }
}

TEST_P(Gemm, of_no_depth_is_zero_or_what_was_there) {
  const Matrix a(GetParam(), 3, 1, false, 0, 1);
  Matrix c(state_dtype(GetParam()), 3, 5, false, 2, 2);
  const Matrix before = c;
  GemmProblem problem{.m = 3,
                      .n = 5,
                      .k = 0,
                      .a = a.view(),
                      .b = a.view(),
                      .c = c.data(),
                      .c_row_stride = c.row_stride(),
                      .accumulate = true};
  multiply(problem);
  EXPECT_TRUE(same_bits(c.tensor(), before.tensor()));
  problem.accumulate = false;
  multiply(problem);
  for (std::int64_t j = 0; j < 5; ++j) EXPECT_EQ(c.at(2, j), 0.0);
  EXPECT_TRUE(std::isnan(c.at(0, 6)));  // a gap
}

TEST_P(Gemm, lets_a_nan_reach_its_row_and_column_and_nothing_else) {
  Matrix a(GetParam(), 17, 65, false, 3, 1);
  Matrix b(GetParam(), 65, 17, true, 3, 2);
  a.set(4, 64, std::nan(""));
  b.set(0, 9, std::nan(""));
  Matrix c(state_dtype(GetParam()), 17, 17, false, 0, 3);
  multiply({.m = 17,
            .n = 17,
            .k = 65,
            .a = a.view(),
            .b = b.view(),
            .c = c.data(),
            .c_row_stride = 17,
            .accumulate = false});
  for (std::int64_t i = 0; i < 17; ++i) {
    for (std::int64_t j = 0; j < 17; ++j) {
      EXPECT_EQ(std::isnan(c.at(i, j)), i == 4 || j == 9) << i << ", " << j;
    }
  }
}

TEST_P(Gemm, is_bitwise_the_same_from_every_thread_and_at_every_alignment) {
  constexpr std::int64_t kM = 65, kN = 129, kK = 300;
  const DType state = state_dtype(GetParam());
  const HostTensor a = random_tensor(GetParam(), {kM, kK}, 1, "a");
  const HostTensor b = random_tensor(GetParam(), {kK, kN}, 1, "b");
  std::array<std::vector<std::byte>, 8> results;
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < results.size(); ++t) {
      threads.emplace_back([&, t] {
        // The same operands and result, shifted by t elements within their allocations.
        const auto moved = [t](const HostTensor& tensor) {
          const std::size_t shift = t * static_cast<std::size_t>(size_in_bytes(tensor.dtype));
          std::vector<std::byte> out(tensor.data.size() + shift);
          std::ranges::copy(tensor.data, out.begin() + static_cast<std::ptrdiff_t>(shift));
          return std::pair{std::move(out), shift};
        };
        const auto [a_data, a_shift] = moved(a);
        const auto [b_data, b_shift] = moved(b);
        auto [c_data, c_shift] = moved(make_tensor(state, {kM, kN}));
        for (int repeat = 0; repeat < 5; ++repeat) {
          multiply({.m = kM,
                    .n = kN,
                    .k = kK,
                    .a = {.data = a_data.data() + a_shift, .dtype = GetParam(), .row_stride = kK},
                    .b = {.data = b_data.data() + b_shift, .dtype = GetParam(), .row_stride = kN},
                    .c = c_data.data() + c_shift,
                    .c_row_stride = kN,
                    .accumulate = false});
        }
        results[t].assign(c_data.begin() + static_cast<std::ptrdiff_t>(c_shift), c_data.end());
      });
    }
  }
  for (const std::vector<std::byte>& result : results) EXPECT_EQ(result, results[0]);
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Gemm,
                         testing::Values(DType::F32, DType::F64, DType::F16, DType::BF16),
                         [](const auto& type) { return std::string(print(type.param)); });

TEST(GemmLoops, are_within_the_bound_too) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 60; ++i) {
    run(draw(random, i % 2 == 0 ? DType::F32 : DType::F64), &multiply_by_loops);
  }
  run({.dtype = DType::F32, .m = 200, .n = 2100, .k = 300, .accumulate = true}, &multiply_by_loops);
}

TEST(GemmChecks, operands_of_two_types_are_an_internal_error) {
  const Matrix a(DType::F32, 2, 2, false, 0, 1);
  const Matrix b(DType::F64, 2, 2, false, 0, 1);
  Matrix c(DType::F32, 2, 2, false, 0, 1);
  EXPECT_THROW(multiply({.m = 2,
                         .n = 2,
                         .k = 2,
                         .a = a.view(),
                         .b = b.view(),
                         .c = c.data(),
                         .c_row_stride = 2,
                         .accumulate = false}),
               InternalError);
}

}  // namespace gemm_test
}  // namespace harpe
