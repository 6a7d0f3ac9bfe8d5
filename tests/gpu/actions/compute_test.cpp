#include <array>
#include <cmath>

#include "exec/cuda/kernels/gemm/gemm.h"
#include "tests/gpu/actions/on_gpu.h"

namespace harpe::testing_support {
namespace compute_test {

using Compute = OnGpu;
using actions::Loop;

constexpr std::array kTypes = {DType::BF16, DType::F16, DType::F32, DType::F64};

// The roundoff of the accumulator: f32, or f64 for f64 operands.
double state_roundoff(DType dtype) { return unit_roundoff(state_dtype(dtype)); }

TEST_F(Compute, combines_states) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    Arena arena(seed);
    const DType dtype = seed % 2 == 0 ? DType::F32 : DType::F64;
    const std::int64_t heads = arena.draw(1, 3);
    const std::int64_t rows = arena.draw(1, 40);
    const std::int64_t dim = arena.draw(1, 100);
    const std::int64_t size = size_in_bytes(dtype);
    // Each combination has two weights and a sum of two products, of numbers up to 1.
    const double bound = 8 * 7 * unit_roundoff(dtype);
    const std::int64_t o = arena.add(dtype, heads * rows * dim, bound);
    const std::int64_t l = arena.add(dtype, heads * rows, bound);
    std::vector<std::pair<std::int64_t, std::int64_t>> others;
    std::vector<std::int64_t> logarithms = {l};
    for (std::int64_t i = arena.draw(1, 7); i > 0; --i) {
      others.emplace_back(arena.add(dtype, heads * rows * dim), 0);
      others.back().second = arena.add(dtype, heads * rows);
      logarithms.push_back(others.back().second);
    }
    for (std::int64_t row = 0; row < heads * rows; ++row) {  // some rows have seen no key
      for (const std::int64_t at : logarithms) {
        if (arena.draw(0, 4) != 0) continue;
        std::byte* const place = arena.bytes().data() + at + row * size;
        if (dtype == DType::F64) *reinterpret_cast<double*>(place) = -INFINITY;
        if (dtype == DType::F32) *reinterpret_cast<float*>(place) = -INFINITY;
      }
    }
    check(arena, [&](std::byte* base) {
      const auto side = [&](std::int64_t o_at, std::int64_t l_at) {
        return actions::Combine::Side{.o = base + o_at,
                                      .l = base + l_at,
                                      .o_dtype = dtype,
                                      .l_dtype = dtype,
                                      .row_strides = {dim, 1}};
      };
      actions::Combine combine{.to = side(o, l),
                               .from = {side(o, l)},
                               .state = dtype,
                               .rows = rows,
                               .value_dim = dim,
                               .loops = {}};
      for (const auto& [o_at, l_at] : others) combine.from.push_back(side(o_at, l_at));
      actions::Loop<actions::Combine::kOperands> loop{.length = heads, .bytes = {}};
      for (std::size_t i = 0; i < 2 + 2 * combine.from.size(); i += 2) {
        loop.bytes[i] = rows * size * dim;
        loop.bytes[i + 1] = rows * size;
      }
      combine.loops.push_back(loop);
      return combine;
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_F(Compute, multiplies_rows) {
  for (unsigned seed = 0; seed < 32; ++seed) {
    Arena arena(seed);
    const DType dtype = kTypes[seed % 4];
    const DType c_dtype = kTypes[seed / 4 % 4];
    const std::int64_t turns = arena.draw(1, 3);
    const std::int64_t rows = arena.draw(1, 30);
    const std::int64_t length = arena.draw(1, 200);
    const bool across = arena.draw(0, 2) == 0;
    const double bound = static_cast<double>((length + 2) * length) * state_roundoff(dtype) +
                         2 * unit_roundoff(c_dtype);
    const std::int64_t c = arena.add(c_dtype, turns * rows, bound);
    const std::int64_t a = arena.add(dtype, turns * rows * length);
    const std::int64_t b = arena.add(dtype, turns * rows * length);
    const std::int64_t step = across ? rows : 1;
    const std::int64_t next = across ? 1 : length;
    check(arena, [&](std::byte* base) {
      actions::RowDot dot;
      dot.first = {.rows = rows,
                   .length = length,
                   .dtype = dtype,
                   .a = {.data = base + a, .row_stride = next, .stride = step},
                   .b = {.data = base + b, .row_stride = length, .stride = 1},
                   .c = base + c,
                   .c_dtype = c_dtype,
                   .c_stride = 1};
      const std::int64_t turn = rows * length * size_in_bytes(dtype);
      dot.loops.push_back({.length = turns, .bytes = {turn, turn, rows * size_in_bytes(c_dtype)}});
      return dot;
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// Rows that fit in registers and longer ones, by vectors and by elements. Sums have equal bits.
TEST_F(Compute, adds_residuals_and_normalises_rows) {
  for (unsigned seed = 0; seed < 48; ++seed) {
    Arena arena(seed);
    const DType dtype = kTypes[seed % 4];
    const std::int64_t turns = arena.draw(1, 2);
    const std::int64_t rows = arena.draw(1, 20);
    const std::int64_t length =
        seed % 3 == 0 ? 8 * arena.draw(1, 2600) : arena.draw(1, seed % 3 == 1 ? 300 : 20000);
    const std::int64_t pitch = length + 8 * arena.draw(0, 1);
    const auto terms = static_cast<double>(length);
    // In a row of numbers up to 2, no element exceeds sqrt(length) times the root mean square.
    const double bound =
        std::sqrt(terms) * ((terms + 8) * state_roundoff(dtype) + 2 * unit_roundoff(dtype));
    const std::int64_t y = arena.add(dtype, turns * rows * pitch, bound);
    const std::int64_t sum = arena.add(dtype, turns * rows * pitch);
    const std::int64_t x = arena.add(dtype, turns * rows * pitch);
    const std::int64_t residual = arena.add(dtype, turns * rows * pitch);
    const std::int64_t weight = arena.add(dtype, length);
    check(arena, [&](std::byte* base) {
      actions::AddRmsNorm norm;
      norm.first = {.rows = rows,
                    .length = length,
                    .x = {.data = base + x, .dtype = dtype, .row_stride = pitch},
                    .residual = {.data = base + residual, .dtype = dtype, .row_stride = pitch},
                    .weight = {.data = base + weight, .dtype = dtype},
                    .sum = {.data = base + sum, .dtype = dtype, .row_stride = pitch},
                    .y = {.data = base + y, .dtype = dtype, .row_stride = pitch},
                    .epsilon = 1e-5};
      const std::int64_t turn = rows * pitch * size_in_bytes(dtype);
      norm.loops.push_back({.length = turns, .bytes = {turn, turn, 0, turn, turn}});
      return norm;
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// A GEMM with either layout of each operand, in batches and accumulated sums.
struct Product {
  std::int64_t m, n, k, batch, sums;
  bool a_transposed, b_transposed, accumulate;
  DType dtype;
  std::int64_t pad;  // elements behind each row
};

Product draw_product(Arena& arena, DType dtype, bool aligned) {
  const std::int64_t unit = aligned ? 8 : 1;
  return {.m = arena.draw(1, 200),
          .n = unit * arena.draw(1, 200 / unit),
          .k = unit * arena.draw(1, 300 / unit),
          .batch = arena.draw(1, 3),
          .sums = arena.draw(1, 2),
          .a_transposed = !aligned && arena.draw(0, 1) == 1,
          .b_transposed = arena.draw(0, 1) == 1,
          .accumulate = arena.draw(0, 1) == 1,
          .dtype = dtype,
          .pad = unit * arena.draw(0, 2)};
}

actions::Action make_product(const Product& p, std::byte* base,
                             const std::array<std::int64_t, 3>& at) {
  const std::int64_t size = size_in_bytes(p.dtype);
  const auto matrix = [&](std::int64_t place, std::int64_t rows, std::int64_t columns,
                          bool turned) {
    const std::int64_t stride = (turned ? rows : columns) + p.pad;
    return MatrixView{.data = base + place,
                      .dtype = p.dtype,
                      .row_stride = turned ? 1 : stride,
                      .column_stride = turned ? stride : 1};
  };
  actions::Multiply multiply;
  multiply.first = {.m = p.m,
                    .n = p.n,
                    .k = p.k,
                    .a = matrix(at[0], p.m, p.k, p.a_transposed),
                    .b = matrix(at[1], p.k, p.n, p.b_transposed),
                    .c = base + at[2],
                    .c_row_stride = p.n + p.pad,
                    .accumulate = p.accumulate};
  const std::int64_t a = (p.a_transposed ? p.k * (p.m + p.pad) : p.m * (p.k + p.pad)) * size;
  const std::int64_t b = (p.b_transposed ? p.n * (p.k + p.pad) : p.k * (p.n + p.pad)) * size;
  const std::int64_t c = p.m * (p.n + p.pad) * size_in_bytes(state_dtype(p.dtype));
  multiply.loops.push_back({.length = p.batch, .bytes = {a, b, c}, .reduces = false});
  multiply.loops.push_back(
      {.length = p.sums, .bytes = {p.batch * a, p.batch * b, 0}, .reduces = true});
  return multiply;
}

TEST_F(Compute, multiplies_matrices) {
  int fast = 0;
  for (unsigned seed = 0; seed < 64; ++seed) {
    Arena arena(seed);
    const DType dtype = kTypes[seed % 4];
    const Product p = draw_product(arena, dtype, seed % 8 < 4);
    const std::int64_t turns = p.batch * p.sums;
    const std::int64_t terms = p.k * p.sums + 2;
    const double bound = static_cast<double>(terms * terms) * state_roundoff(dtype);
    const std::int64_t room = p.pad + 1;
    const std::array<std::int64_t, 3> at = {
        arena.add(dtype, turns * (p.m + room) * (p.k + room)),
        arena.add(dtype, turns * (p.k + room) * (p.n + room)),
        arena.add(state_dtype(dtype), p.batch * p.m * (p.n + p.pad), bound)};
    const auto specs = check(arena, [&](std::byte* base) { return make_product(p, base, at); });
    for (const cuda::LaunchSpec& spec : specs) {
      if (spec.is<cuda::GemmSpec>()) ++fast;
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(fast, 0);
}

}  // namespace compute_test
}  // namespace harpe::testing_support
