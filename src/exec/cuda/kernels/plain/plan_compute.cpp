#include <optional>

#include "exec/cuda/kernels/loop_nests.h"
#include "exec/cuda/kernels/plain/plain_plans.h"

namespace harpe::cuda {
namespace {

using actions::Loop;

constexpr std::int64_t kRowsOfBlock = device::kRowThreads / 32;

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

}  // namespace

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::RowDot& products) {
  LaunchSpecs launches;
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

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Multiply& products) {
  LaunchSpecs launches;
  const GemmProblem& p = products.first;
  if (!number_of(p.a.dtype) || p.a.dtype != p.b.dtype) {
    return no_kernel(choice, "GEMMs of `" + std::string(print(p.a.dtype)) + "`");
  }
  const Loops<3> loops = joined(products.loops);
  if (p.m <= 0 || p.n <= 0 || turns_of(std::span<const Loop<3>>(loops)) == 0) return launches;
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
