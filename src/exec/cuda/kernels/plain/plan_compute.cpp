#include <cmath>
#include <optional>

#include "exec/cuda/kernels/loop_nests.h"

namespace harpe::cuda {
namespace {

using actions::Loop;
using device::GemmLayout;

constexpr std::int64_t kRowsOfBlock = device::kRowThreads / 32;

// More products than this by the kernels for tensor cores are better one plain launch.
constexpr std::int64_t kMostProducts = 64;

// A single row or column has no stride that means anything: one that any kernel takes.
std::int64_t stride_of(std::int64_t stride, std::int64_t count, std::int64_t length) {
  return count == 1 ? divide_up(length, 8) * 8 : stride;
}

// The product for tensor cores, where its operands lie as they are read there. All rows that there
// may be are multiplied where its kernel does not ask how many are used: each row of C depends on
// the same row of A alone, and those that are not used are nobody's to read.
std::optional<GemmSpec> fast_product(const GemmProblem& p, const device::UsedRows& used,
                                     std::int64_t likely_rows, const LaunchChoice& choice) {
  const auto element = half_of(p.a.dtype);
  if (!element || p.k <= 0 || (p.a.column_stride != 1 && p.k > 1)) return std::nullopt;
  GemmSpec spec;
  spec.n = p.n;
  spec.k = p.k;
  spec.in = *element;
  spec.out = device::Element::F32;
  spec.add = p.accumulate;
  spec.b = address_of(p.b.data);
  spec.b_stride = stride_of(p.b.row_stride, p.k, p.n);
  if (p.b.column_stride != 1 && p.n > 1) {
    spec.layout = GemmLayout::KMajor;
    spec.b_stride = p.b.column_stride;
  } else if (p.n == 1 && p.b.row_stride == 1) {
    spec.layout = GemmLayout::KMajor;
    spec.b_stride = stride_of(0, 1, p.k);
  }
  const std::int64_t a_stride = stride_of(p.a.row_stride, p.m, p.k);
  const std::int64_t b_row = spec.layout == GemmLayout::KMajor ? p.k : p.n;
  if (a_stride < p.k || spec.b_stride < b_row) return std::nullopt;  // rows that overlap
  spec.panels = {
      {.rows = p.m,
       .pieces = {{.a = address_of(p.a.data), .stride = a_stride, .k_begin = 0, .k_count = p.k}},
       .c = address_of(p.c),
       .c_stride = stride_of(p.c_row_stride, p.m, p.n)}};
  spec.engine = engine_of(choice.kernel);
  if (spec.engine != LeafEngine::Own) return spec;
  spec.panels.front().used = used;
  spec.panels.front().likely_rows = likely_rows;
  if (check(spec, choice.multiprocessors).ok()) return spec;
  spec.panels.front().used = {};
  spec.panels.front().likely_rows = 0;
  if (!check(spec, choice.multiprocessors).ok()) return std::nullopt;
  return spec;
}

// All of them, or none.
std::optional<std::vector<LaunchSpec>> fast_products(const LaunchChoice& choice,
                                                     const actions::Multiply& products,
                                                     const Loops<3>& loops) {
  const std::span<const Loop<3>> all(loops);
  const bool is_own = engine_of(choice.kernel) == LeafEngine::Own;
  if (is_own && turns_of(all) > kMostProducts) return std::nullopt;
  const GemmProblem& first = products.first;
  const device::UsedRows used = used_rows(products.used, products.result, first.m);
  const auto likely =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(first.m) * products.used.taken));
  std::vector<LaunchSpec> launches;
  bool fast = true;
  actions::for_each_turn(all, [&](const auto& offsets, bool again) {
    GemmProblem p = first;
    p.a.data = moved(p.a.data, offsets[0]);
    p.b.data = moved(p.b.data, offsets[1]);
    p.c = moved(p.c, offsets[2]);
    p.accumulate = p.accumulate || again;
    const std::optional<GemmSpec> spec =
        fast ? fast_product(p, used, likely, choice) : std::nullopt;
    fast = fast && spec;
    if (fast) launches.emplace_back(*spec);
  });
  if (!fast) return std::nullopt;
  return launches;
}

device::PlainMatrix plain_matrix(const MatrixView& matrix) {
  return {.data = matrix.data,
          .number = *number_of(matrix.dtype),
          .row_stride = matrix.row_stride,
          .column_stride = matrix.column_stride};
}

device::PlainGemmArgs plain_product(const GemmProblem& p) {
  device::PlainGemmArgs args{};
  args.a = plain_matrix(p.a);
  args.b = plain_matrix(p.b);
  args.c = p.c;
  args.c_row_stride = p.c_row_stride;
  args.m = p.m;
  args.n = p.n;
  args.k = p.k;
  args.accumulate = p.accumulate;
  return args;
}

PlainLaunch copy_of_number(std::int32_t* to, const std::int32_t* from) {
  device::MoveArgs args{};
  args.to = to;
  args.from = from;
  args.words = 1;
  args.word_bytes = sizeof(std::int32_t);
  return {.kernel = PlainKernel::Move, .wide = false, .blocks = 1, .args = args};
}

bool is_state(DType dtype) { return dtype == DType::F32 || dtype == DType::F64; }

}  // namespace

std::optional<device::Element> half_of(DType dtype) {
  if (dtype == DType::BF16) return device::Element::BF16;
  if (dtype == DType::F16) return device::Element::F16;
  return std::nullopt;
}

std::optional<device::Number> number_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return device::Number::F32;
    case DType::F16:
      return device::Number::F16;
    case DType::BF16:
      return device::Number::BF16;
    case DType::F64:
      return device::Number::F64;
    default:
      return std::nullopt;
  }
}

Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice, const actions::Combine& fold) {
  std::vector<LaunchSpec> launches;
  if (!is_state(fold.dtype)) {
    return no_kernel(choice, "a state of `" + std::string(print(fold.dtype)) + "`");
  }
  const Loops<4> loops = joined(fold.loops);
  device::CombineArgs args{};
  args.rows = fold.rows;
  args.value_dim = fold.value_dim;
  for (std::size_t i = 0; i < 4; ++i) {
    args.row_bytes[i] = fold.row_strides[i] * size_in_bytes(fold.dtype);
  }
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops, [&](const auto& offsets, const auto& inner) {
        args.o = fold.o + offsets[0];
        args.l = fold.l + offsets[1];
        args.o2 = fold.o2 + offsets[2];
        args.l2 = fold.l2 + offsets[3];
        args.nest = nest_of(inner);
        args.all_rows = fold.rows * turns_of(inner);
        if (args.all_rows <= 0) return;
        launches.emplace_back(
            PlainLaunch{.kernel = PlainKernel::Combine,
                        .wide = fold.dtype == DType::F64,
                        .blocks = few_blocks(choice, divide_up(args.all_rows, kRowsOfBlock)),
                        .args = args});
      }));
  return launches;
}

Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice, const actions::RowDot& products) {
  std::vector<LaunchSpec> launches;
  const RowDotProblem& p = products.first;
  const auto number = number_of(p.dtype);
  const auto c_number = number_of(p.c_dtype);
  if (!number || !c_number) {
    return no_kernel(choice, "dot products of `" + std::string(print(p.dtype)) + "`");
  }
  const Loops<3> loops = joined(products.loops);
  const std::int64_t size = size_in_bytes(p.dtype);
  device::RowDotArgs args{};
  args.number = *number;
  args.c_number = *c_number;
  args.rows = p.rows;
  args.length = p.length;
  args.a_bytes[0] = p.a.row_stride * size;
  args.a_bytes[1] = p.a.stride * size;
  args.b_bytes[0] = p.b.row_stride * size;
  args.b_bytes[1] = p.b.stride * size;
  args.c_bytes = p.c_stride * size_in_bytes(p.c_dtype);
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops, [&](const auto& offsets, const auto& inner) {
        args.a = moved(p.a.data, offsets[0]);
        args.b = moved(p.b.data, offsets[1]);
        args.c = moved(p.c, offsets[2]);
        args.nest = nest_of(inner);
        args.all_rows = p.rows * turns_of(inner);
        if (args.all_rows <= 0) return;
        launches.emplace_back(
            PlainLaunch{.kernel = PlainKernel::RowDot,
                        .wide = p.dtype == DType::F64,
                        .blocks = few_blocks(choice, divide_up(args.all_rows, kRowsOfBlock)),
                        .args = args});
      }));
  return launches;
}

Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                      const actions::Multiply& products) {
  std::vector<LaunchSpec> launches;
  const GemmProblem& p = products.first;
  if (!number_of(p.a.dtype) || p.a.dtype != p.b.dtype) {
    return no_kernel(choice, "products of `" + std::string(print(p.a.dtype)) + "`");
  }
  const Loops<3> loops = joined(products.loops);
  if (p.m <= 0 || p.n <= 0 || turns_of(std::span<const Loop<3>>(loops)) == 0) return launches;
  if (auto fast = fast_products(choice, products, loops)) {
    const bool asks = std::get<GemmSpec>(fast->front()).panels.front().used.rows != nullptr;
    if (products.used.rows != nullptr && products.result != nullptr && !asks) {
      fast->emplace_back(copy_of_number(products.result, products.used.rows));
    }
    return std::move(*fast);
  }
  if (!choice.kernel.empty()) {
    return no_leaf(choice, "products of `" + std::string(print(p.a.dtype)) +
                               "`, and operands whose rows are not whole");
  }
  device::PlainGemmArgs args = plain_product(p);
  args.used = used_rows(products.used, products.result, p.m);
  const std::int64_t tiles =
      divide_up(p.m, device::kPlainTile) * divide_up(p.n, device::kPlainTile);
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops, [&](const auto& offsets, const auto& inner) {
        args.a.data = moved(p.a.data, offsets[0]);
        args.b.data = moved(p.b.data, offsets[1]);
        args.c = moved(p.c, offsets[2]);
        args.nest = nest_of(inner);
        args.turns = turns_of(inner.first(static_cast<std::size_t>(args.nest.kept)));
        args.sums = turns_of(inner.subspan(static_cast<std::size_t>(args.nest.kept)));
        launches.emplace_back(PlainLaunch{.kernel = PlainKernel::Gemm,
                                          .wide = p.a.dtype == DType::F64,
                                          .blocks = as_grid(tiles * args.turns),
                                          .args = args});
      }));
  return launches;
}

}  // namespace harpe::cuda
