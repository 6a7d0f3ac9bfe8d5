#include <array>
#include <numeric>
#include <optional>

#include "tests/gpu/actions/on_gpu.h"

namespace harpe::testing_support {
namespace moves_test {

using Moves = OnGpu;
using actions::Rows;
using actions::View;

constexpr std::array kTypes = {DType::F32, DType::F16, DType::BF16, DType::F64};

double roundoff(DType dtype) { return unit_roundoff(dtype); }

// Axes in any order, some with gaps between their rows.
struct Layout {
  std::vector<std::int64_t> strides;
  std::int64_t elements = 1;
};

Layout draw_layout(Arena& arena, const std::vector<std::int64_t>& lengths, bool in_order) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!in_order) std::ranges::shuffle(order, arena.random());
  Layout layout;
  layout.strides.resize(lengths.size());
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    layout.strides[*axis] = layout.elements;
    layout.elements *= lengths[*axis] + arena.draw(0, 2) * arena.draw(0, 1);
  }
  return layout;
}

std::vector<std::int64_t> draw_lengths(Arena& arena, std::size_t axes) {
  std::vector<std::int64_t> lengths;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    lengths.push_back(axes > 4 ? arena.draw(2, 3) : arena.draw(1, 24));
  }
  if (arena.draw(0, 1) == 1) lengths.back() = 64;
  return lengths;
}

struct Pair {
  std::vector<std::int64_t> lengths;
  Layout to;
  Layout from;
  std::int64_t to_at = 0;
  std::int64_t from_at = 0;
};

Pair draw_pair(Arena& arena, DType to, DType from, std::size_t axes) {
  Pair pair;
  pair.lengths = draw_lengths(arena, axes);
  pair.to = draw_layout(arena, pair.lengths, true);
  pair.from = draw_layout(arena, pair.lengths, arena.draw(0, 1) == 1);
  pair.to_at = arena.add(to, pair.to.elements, 0, arena.draw(0, 1));
  pair.from_at = arena.add(from, pair.from.elements, 0, arena.draw(0, 1));
  return pair;
}

View view(std::byte* base, std::int64_t at, DType dtype, const Layout& layout) {
  View result;
  result.data = base + at;
  result.dtype = dtype;
  result.strides = layout.strides;
  return result;
}

Rows rows_of(const Pair& pair) {
  const std::vector<std::int64_t> strides[] = {pair.to.strides, pair.from.strides};
  return Rows(pair.lengths, strides);
}

TEST_F(Moves, are_the_hosts_bit_by_bit) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Arena arena(seed);
    constexpr std::array kAll = {DType::F32, DType::F16, DType::BF16, DType::F64,
                                 DType::I32, DType::I64, DType::U8};
    const DType dtype = kAll[seed % kAll.size()];
    const Pair pair = draw_pair(arena, dtype, dtype, static_cast<std::size_t>(1 + seed % 9));
    check(
        arena,
        [&](std::byte* base) {
          return actions::Assign{.to = view(base, pair.to_at, dtype, pair.to),
                                 .from = view(base, pair.from_at, dtype, pair.from),
                                 .rows = rows_of(pair)};
        },
        seed % 2 == 0);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_F(Moves, round_as_the_host_does) {
  for (unsigned seed = 0; seed < 64; ++seed) {
    Arena arena(seed);
    const DType to = kTypes[seed % 4];
    const DType from = kTypes[seed / 4 % 4];
    const Pair pair = draw_pair(arena, to, from, static_cast<std::size_t>(1 + seed % 5));
    check(arena, [&](std::byte* base) {
      return actions::Assign{.to = view(base, pair.to_at, to, pair.to),
                             .from = view(base, pair.from_at, from, pair.from),
                             .rows = rows_of(pair)};
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_F(Moves, go_along_slots) {
  Arena arena(7);
  const std::int64_t to = arena.add(DType::F32, 5 * 40);
  const std::int64_t from = arena.add(DType::BF16, 5 * 32);
  check(arena, [&](std::byte* base) {
    const std::vector<std::int64_t> strides[] = {{1}, {1}};
    actions::Assign assign{.to = view(base, to, DType::F32, {{1}, 32}),
                           .from = view(base, from, DType::BF16, {{1}, 32}),
                           .rows = Rows(std::vector<std::int64_t>{32}, strides)};
    assign.slots.capacity = 5;
    assign.slots.strides = {40, 32};
    return assign;
  });
}

TEST_F(Moves, add_and_fill_as_the_host_does) {
  for (unsigned seed = 0; seed < 48; ++seed) {
    Arena arena(seed);
    const DType to = seed % 2 == 0 ? DType::F32 : DType::F64;
    const DType from = kTypes[seed / 2 % 4];
    const Pair pair = draw_pair(arena, to, from, static_cast<std::size_t>(1 + seed % 5));
    check(arena, [&](std::byte* base) {
      return actions::Add{.to = view(base, pair.to_at, to, pair.to),
                          .from = view(base, pair.from_at, from, pair.from),
                          .rows = rows_of(pair)};
    });
    const std::vector<std::int64_t> strides[] = {pair.from.strides};
    check(arena, [&](std::byte* base) {
      return actions::Fill{.to = view(base, pair.from_at, from, pair.from),
                           .value = seed % 3 == 0 ? -INFINITY : 0.3,
                           .rows = Rows(pair.lengths, strides)};
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_F(Moves, sum_in_order_as_the_host_does) {
  for (unsigned seed = 0; seed < 96; ++seed) {
    Arena arena(seed);
    const DType state = seed % 4 == 0 ? DType::F64 : DType::F32;
    const DType to = kTypes[static_cast<std::size_t>(arena.draw(0, state == DType::F64 ? 3 : 2))];
    const std::vector<std::int64_t> lengths =
        draw_lengths(arena, static_cast<std::size_t>(1 + seed % 5));
    struct Operand {
      Layout layout;
      std::int64_t at = 0;
      DType dtype = DType::F32;
      std::optional<DType> wire;
    };
    const auto operand = [&](DType dtype, bool in_order) {
      Operand one{.layout = draw_layout(arena, lengths, in_order), .dtype = dtype, .wire = {}};
      one.at = arena.add(dtype, one.layout.elements, 0, arena.draw(0, 1));
      return one;
    };
    const Operand result = operand(to, true);
    std::vector<Operand> sources;
    for (std::size_t i = 0; i < 1 + seed % actions::kFoldSources; ++i) {
      sources.push_back(
          operand(kTypes[static_cast<std::size_t>(arena.draw(0, 2))], arena.draw(0, 2) > 0));
      if (arena.draw(0, 2) == 0) sources.back().wire = DType::BF16;
    }
    check(arena, [&](std::byte* base) {
      actions::Sum sum{.to = view(base, result.at, to, result.layout), .from = {}, .state = state};
      std::vector<std::vector<std::int64_t>> strides = {result.layout.strides};
      for (const Operand& source : sources) {
        sum.from.push_back(
            {.view = view(base, source.at, source.dtype, source.layout), .wire = source.wire});
        strides.push_back(source.layout.strides);
      }
      sum.rows = Rows(lengths, strides);
      return sum;
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// The relative error of a function of a few operations and one rounding of the result.
double bound_of(Pointwise function, DType computed, DType to) {
  const bool exact =
      function == Pointwise::Relu || function == Pointwise::Add || function == Pointwise::Mul;
  return exact ? 0 : 16 * roundoff(computed) + 2 * roundoff(to);
}

TEST_F(Moves, apply_functions) {
  constexpr std::array kFunctions = {Pointwise::Silu,    Pointwise::Relu, Pointwise::Gelu,
                                     Pointwise::Add,     Pointwise::Mul,  Pointwise::SiluMul,
                                     Pointwise::RmsScale};
  for (unsigned seed = 0; seed < 112; ++seed) {
    Arena arena(seed);
    const Pointwise function = kFunctions[seed % 7];
    const bool unary = function <= Pointwise::Gelu;
    const DType a = kTypes[seed / 7 % 4];
    const DType b = kTypes[seed / 3 % 4];
    const DType to = kTypes[seed / 28 % 4];
    const bool wide = a == DType::F64 || (!unary && b == DType::F64);
    const double bound = bound_of(function, wide ? DType::F64 : DType::F32, to);
    const std::int64_t rows = arena.draw(1, 9);
    const std::int64_t length = arena.draw(0, 1) == 0 ? 64 : arena.draw(1, 40);
    const std::int64_t pitch = length + arena.draw(0, 1) * 8;
    const std::int64_t to_at = arena.add(to, rows * pitch, bound);
    const std::int64_t a_at = arena.add(a, rows * pitch);
    const std::int64_t b_at = arena.add(b, rows * pitch);
    const bool scales = function == Pointwise::RmsScale;  // one operand per row
    check(arena, [&](std::byte* base) {
      const std::vector<std::int64_t> strides[] = {{pitch}, {pitch}, {scales ? 1 : pitch}};
      actions::Apply apply;
      apply.first = {
          .function = function,
          .length = length,
          .to = base + to_at,
          .to_dtype = to,
          .to_stride = 1,
          .a = {.data = base + a_at, .dtype = a, .stride = 1},
          .b = {.data = unary ? nullptr : base + b_at, .dtype = b, .stride = scales ? 0 : 1},
          .features = 16,
          .epsilon = 1.5};
      apply.rows = Rows(std::vector<std::int64_t>{rows}, strides);
      return apply;
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace moves_test
}  // namespace harpe::testing_support
