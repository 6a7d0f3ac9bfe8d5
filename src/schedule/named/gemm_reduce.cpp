#include "schedule/named/builder.h"
#include "schedule/named/gemm_parts.h"
#include "schedule/named/gemm_shape.h"

namespace harpe {
namespace {

using Level = MeshPlan::Level;

constexpr Transfer kPushSums{How::Direct, Initiator::Src, {}, Via::Sm, Signal::Counter};
constexpr Transfer kExchangeSums{How::OneShot, Initiator::Src, {}, Via::Sm, Signal::Counter};
constexpr Transfer kFetchSums{How::Direct, Initiator::Dst, 2, Via::Ce, Signal::Event};

// The GEMM whose partial sums are reduced: the whole program, or all except a norm of its rows,
// which each rank computes for its own rows.
Checked<GemmShape> read_reduced(const Program& program) {
  if (program.nests.size() != 2) return read_gemm(program);
  HP_TRY(NormShape shape, read_normalised_gemm(program));
  return std::move(shape.gemm);
}

// A replicated result is reduced block by block and gathered (commir.md D14): along its rows, or
// along its columns if there are more columns and fewer rows than ranks.
const SizedAxis& blocked_axis(const GemmShape& shape, Reduced result, std::int64_t ranks) {
  const bool rows = shape.m.size >= ranks || shape.m.size >= shape.n.size;
  return result == Reduced::Scattered || rows ? shape.m : shape.n;
}

// The blocks of the result that are reduced: of its blocked axis, or of its columns.
struct BlocksOfResult {
  bool of_columns = false;
  std::int64_t bands = 0;  // of columns, that the leaf makes one after the other; 0: all at once
};

// A band has a signal of its own, so a rank adds the first one while the second one crosses the
// link. A band has at least the tiles of 128 x 128 of half an H200: a block that is computed at
// once arrives at once. Kernels take bands of equal widths alone.
std::int64_t bands_of(const GemmShape& shape, std::int64_t ranks, bool of_columns) {
  constexpr std::int64_t kBands = 2;
  constexpr std::int64_t kTile = 128;
  constexpr std::int64_t kLeast = 64 * kTile * kTile;
  const std::int64_t widths = kBands * (of_columns ? ranks : 1);
  const bool are_equal = shape.n.size % (widths * kTile) == 0;
  return are_equal && shape.m.size * shape.n.size / ranks >= kBands * kLeast ? kBands : 1;
}

struct Reduction {
  ScheduleBuilder builder;
  Level all;
  std::string block;       // digit of the result for the reduction
  std::string band;        // digit of its columns, if `bands` is not 0
  std::int64_t bands = 0;  // BlocksOfResult::bands
};

Reduction place_operands(std::string_view schedule, const Program& program, const Mesh& mesh,
                         const GemmShape& shape, Reduced result,
                         const BlocksOfResult& blocks = {}) {
  const MeshPlan plan(mesh);
  Reduction out{ScheduleBuilder(schedule, program, plan), plan.all(), "", "", blocks.bands};
  const SizedAxis& axis = blocks.of_columns ? shape.n : blocked_axis(shape, result, out.all.ranks);
  const bool by_rows = axis.name == shape.m.name;
  std::vector<std::int64_t> factors{out.all.ranks};
  if (blocks.bands > 0 && !by_rows) factors.push_back(blocks.bands);
  const auto digits = out.builder.tile(axis.name, factors, by_rows ? "m" : "n");
  out.block = digits[0];
  if (blocks.bands > 0) {
    out.band = by_rows ? out.builder.tile(shape.n.name, {blocks.bands}, "n").front() : digits[1];
  }
  const auto k = out.builder.tile(shape.k.name, {out.all.ranks}, "k");
  out.builder.shard({shape.a, shape.b}, k[0], out.all);
  if (result == Reduced::Scattered) out.builder.shard({shape.c}, out.block, out.all);
  out.builder.parallelize(shape.nest, k[0], out.all);
  return out;
}

// Rotates block by block. Each rank starts with its successor's block, so its own comes last,
// complete.
Checked<Script> rotate_result(std::string_view schedule, const Program& program, const Mesh& mesh,
                              Reduced result, const Transfer& transfer) {
  HP_TRY(const GemmShape shape, read_reduced(program));
  Reduction reduction = place_operands(schedule, program, mesh, shape, result);
  reduction.builder.rotate(shape.nest, reduction.block, reduction.all, 1);
  reduction.builder.drain(shape.nest, {shape.c}, reduction.all, reduction.block, transfer);
  return reduction.builder.take();
}

// Sends each band of a partial block as soon as the GEMM has made it, the successor's first.
void push_blocks(Reduction& reduction, const GemmShape& shape) {
  ScheduleBuilder& builder = reduction.builder;
  builder.drain(shape.nest, {shape.c}, reduction.all, "", kPushSums);
  std::vector<std::string> order{reduction.block};
  const MeshRef over = builder.axes(reduction.all);
  if (reduction.bands > 1) {
    builder.add(ChunkMove{shape.nest, {shape.c}, over, std::nullopt, reduction.band});
  }
  order.insert(order.end(), over.begin(), over.end());
  builder.add(ChunkLeaf{shape.nest, "leaf", reduction.band, order});
}

// One kernel per rank makes all blocks and waits for each of their bands.
Checked<Script> push_result(std::string_view schedule, const Program& program, const Mesh& mesh,
                            Reduced result, bool of_columns) {
  HP_TRY(const GemmShape shape, read_reduced(program));
  const std::int64_t bands = bands_of(shape, MeshPlan(mesh).all().ranks, of_columns);
  Reduction reduction = place_operands(schedule, program, mesh, shape, result,
                                       {.of_columns = of_columns, .bands = bands});
  push_blocks(reduction, shape);
  reduction.builder.add(
      FuseNests{shape.nest + "_fused", {shape.nest}, true, std::nullopt, std::nullopt});
  return reduction.builder.take();
}

}  // namespace

Checked<Script> reduce_bulk(const Program& program, const Mesh& mesh, Reduced result) {
  HP_TRY(const GemmShape shape, read_reduced(program));
  Reduction reduction = place_operands("bulk", program, mesh, shape, result);
  reduction.builder.drain(shape.nest, {shape.c}, reduction.all, "", kBulk);
  return reduction.builder.take();
}

Checked<Script> reduce_ring(const Program& program, const Mesh& mesh) {
  return rotate_result("ring", program, mesh, Reduced::Scattered, kRelay);
}

Checked<Script> reduce_fetch(const Program& program, const Mesh& mesh, Reduced result) {
  return rotate_result("fetch", program, mesh, result, kFetchSums);
}

Checked<Script> reduce_push(const Program& program, const Mesh& mesh, Reduced result) {
  return push_result("push", program, mesh, result, false);
}

Checked<Script> reduce_push_n(const Program& program, const Mesh& mesh) {
  return push_result("push_n", program, mesh, Reduced::Replicated, true);
}

Checked<Script> reduce_one_shot(const Program& program, const Mesh& mesh) {
  HP_TRY(const GemmShape shape, read_reduced(program));
  const MeshPlan plan(mesh);
  ScheduleBuilder builder("one_shot", program, plan);
  const auto k = builder.tile(shape.k.name, {plan.all().ranks}, "k");
  builder.shard({shape.a, shape.b}, k[0], plan.all());
  builder.parallelize(shape.nest, k[0], plan.all());
  builder.drain(shape.nest, {shape.c}, plan.all(), "", kExchangeSums);
  return builder.take();
}

Checked<Script> reduce_normalise_gather(const Program& program, const Mesh& mesh) {
  HP_TRY(const NormShape shape, read_normalised_gemm(program));
  Reduction reduction =
      place_operands("scattered", program, mesh, shape.gemm, Reduced::Scattered, {.bands = 1});
  ScheduleBuilder& builder = reduction.builder;
  builder.shard({shape.residual, shape.residual_out}, reduction.block, reduction.all);
  builder.parallelize(shape.nest, reduction.block, reduction.all);
  push_blocks(reduction, shape.gemm);
  builder.drain(shape.nest, {shape.y}, reduction.all, "", kPushSums);
  return builder.take();
}

Checked<Script> reduce_hierarchical(const Program& program, const Mesh& mesh, Reduced result) {
  HP_TRY(const GemmShape shape, read_reduced(program));
  MeshPlan plan(mesh);
  const auto [outer, inner] = plan.outer_and_inner(smaller_factor(plan.all().ranks));
  ScheduleBuilder builder("hierarchical", program, plan);
  const SizedAxis& axis = blocked_axis(shape, result, plan.all().ranks);
  const auto block = builder.tile(axis.name, {outer.ranks, inner.ranks}, "t");
  const auto k = builder.tile(shape.k.name, {outer.ranks, inner.ranks}, "k");
  builder.shard({shape.a, shape.b}, k[0], outer);
  builder.shard({shape.a, shape.b}, k[1], inner);
  if (result == Reduced::Scattered) {
    builder.shard({shape.c}, block[0], outer);
    builder.shard({shape.c}, block[1], inner);
  }
  builder.parallelize(shape.nest, k[0], outer);
  builder.parallelize(shape.nest, k[1], inner);
  builder.drain(shape.nest, {shape.c}, inner, "", kBulk);
  builder.drain(shape.nest, {shape.c}, outer, "", kBulk);
  return builder.take();
}

}  // namespace harpe
