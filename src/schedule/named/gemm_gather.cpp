#include <algorithm>

#include "schedule/named/builder.h"
#include "schedule/named/gemm_parts.h"
#include "schedule/named/gemm_shape.h"

namespace harpe {
namespace {

using Level = MeshPlan::Level;

constexpr std::int64_t kGatherPushChunks =
    4;  // transfers per source, so that the leaf starts early
constexpr std::int64_t kSmsOfFusedCopies = 12;

// The chunks in which each rank's operand is sent: of its blocked axis, or of K.
struct Chunks {
  std::int64_t count = 1;
  bool along_k = false;
};

// Copies by the kernel's own thread blocks start at no cost, so a chunk may have as few rows as a
// tile of two thread blocks. But chunks should fill tiles, and each chunk reads all weights again.
// So there is one if all rows arrive while a rank multiplies its own by `columns`; else as many as
// leave the fewest rows of tiles empty.
std::int64_t fused_chunks(std::int64_t rows, std::int64_t columns, std::int64_t ranks) {
  constexpr std::int64_t kLeastRows = 256;
  constexpr std::int64_t kMost = 8;
  constexpr std::int64_t kRowsOfTile = 128;
  constexpr std::int64_t kColumnsOfRank = 2400;  // 720 TFLOP/s / 300 GB/s
  if (columns >= (ranks - 1) * kColumnsOfRank) return 1;
  const auto in_tiles = [&](std::int64_t chunks) {
    const std::int64_t each = (rows + chunks - 1) / chunks;
    return (each + kRowsOfTile - 1) / kRowsOfTile * chunks;
  };
  std::int64_t best = 1;
  for (std::int64_t chunks = 2; chunks <= std::min(kMost, rows / kLeastRows); ++chunks) {
    if (in_tiles(chunks) <= in_tiles(best)) best = chunks;
  }
  return best;
}

// A GEMM by roles: the `moved` operand is blocked along `travel`; the other operand and the result
// are blocked along `stay`.
struct Sides {
  std::string moved;
  std::string fixed;
  SizedAxis travel;
  SizedAxis stay;
};

Sides sides_of(const GemmShape& shape, Gathered operand) {
  if (operand == Gathered::A) return {shape.a, shape.b, shape.m, shape.n};
  return {shape.b, shape.a, shape.n, shape.m};
}

struct Gather {
  ScheduleBuilder builder;
  Level all;
  std::vector<std::string> travel;  // of the gathered axis
};

Gather place_operands(std::string_view schedule, const Program& program, const Mesh& mesh,
                      const GemmShape& shape, const Sides& sides,
                      const std::vector<std::int64_t>& inner = {}) {
  const MeshPlan plan(mesh);
  Gather out{ScheduleBuilder(schedule, program, plan), plan.all(), {}};
  std::vector<std::int64_t> factors{out.all.ranks};
  factors.insert(factors.end(), inner.begin(), inner.end());
  out.travel = out.builder.tile(sides.travel.name, factors, sides.moved == shape.a ? "m" : "n");
  const auto stay =
      out.builder.tile(sides.stay.name, {out.all.ranks}, sides.moved == shape.a ? "n" : "m");
  out.builder.shard({sides.moved}, out.travel[0], out.all);
  out.builder.shard({sides.fixed, shape.c}, stay[0], out.all);
  out.builder.parallelize(shape.nest, stay[0], out.all);
  return out;
}

Checked<Script> rotate_operand(std::string_view schedule, const Program& program, const Mesh& mesh,
                               Gathered operand, const Transfer& transfer) {
  HP_TRY(const GemmShape shape, read_gemm(program));
  const Sides sides = sides_of(shape, operand);
  Gather gather = place_operands(schedule, program, mesh, shape, sides);
  gather.builder.rotate(shape.nest, gather.travel[0], gather.all);
  gather.builder.stage(shape.nest, {sides.moved}, gather.all, gather.travel[0], transfer);
  return gather.builder.take();
}

// Pushes each rank's operand in chunks to all ranks; one kernel per rank waits for each.
Checked<Script> push_operand(std::string_view schedule, const Program& program, const Mesh& mesh,
                             Gathered operand, const Chunks& chunks, const Transfer& transfer) {
  HP_TRY(const GemmShape shape, read_gemm(program));
  const Sides sides = sides_of(shape, operand);
  std::vector<std::int64_t> inner;
  if (!chunks.along_k) inner.push_back(chunks.count);
  Gather gather = place_operands(schedule, program, mesh, shape, sides, inner);
  ScheduleBuilder& builder = gather.builder;
  const MeshRef over = builder.axes(gather.all);
  const std::string chunk =
      chunks.along_k ? builder.tile(shape.k.name, {chunks.count}, "k").front() : gather.travel[1];
  builder.stage(shape.nest, {sides.moved}, gather.all, "", transfer);
  if (transfer.via == Via::Tma) {  // the waiting kernel gets the remaining SMs
    builder.add(Budget{shape.nest, {{sides.moved}}, over, std::nullopt, kSmsOfFusedCopies});
    builder.add(
        Budget{shape.nest, std::nullopt, std::nullopt, std::nullopt, kMaxSms - kSmsOfFusedCopies});
  }
  builder.add(ChunkMove{shape.nest, {sides.moved}, over, std::nullopt, chunk});
  std::vector<std::string> order{gather.travel[0]};
  order.insert(order.end(), over.begin(), over.end());
  builder.add(ChunkLeaf{shape.nest, "leaf", chunk, order});
  builder.add(FuseNests{shape.nest + "_fused", {shape.nest}, true, std::nullopt, std::nullopt});
  return builder.take();
}

}  // namespace

Checked<Script> gather_bulk(const Program& program, const Mesh& mesh, Gathered operand) {
  HP_TRY(const GemmShape shape, read_gemm(program));
  const Sides sides = sides_of(shape, operand);
  Gather gather = place_operands("bulk", program, mesh, shape, sides);
  gather.builder.stage(shape.nest, {sides.moved}, gather.all, "", kBulk);
  return gather.builder.take();
}

Checked<Script> gather_ring(const Program& program, const Mesh& mesh, Gathered operand) {
  return rotate_operand("ring", program, mesh, operand, kRelay);
}

Checked<Script> gather_fetch(const Program& program, const Mesh& mesh, Gathered operand) {
  return rotate_operand("fetch", program, mesh, operand, kFetch);
}

Checked<Script> gather_pull(const Program& program, const Mesh& mesh, Gathered operand) {
  return rotate_operand("pull", program, mesh, operand, kPull);
}

Checked<Script> gather_push(const Program& program, const Mesh& mesh, Gathered operand) {
  HP_TRY(const GemmShape shape, read_gemm(program));
  const Sides sides = sides_of(shape, operand);
  const std::int64_t ranks = MeshPlan(mesh).all().ranks;
  const std::int64_t chunks =
      push_chunks(bytes_of(program, sides.moved) / ranks, kGatherPushChunks);
  return push_operand("push", program, mesh, operand, {.count = chunks}, kPush);
}

Checked<Script> gather_fused(const Program& program, const Mesh& mesh, Gathered operand) {
  HP_TRY(const GemmShape shape, read_gemm(program));
  const std::int64_t ranks = MeshPlan(mesh).all().ranks;
  const Sides sides = sides_of(shape, operand);
  const std::int64_t chunks =
      fused_chunks(sides.travel.size / ranks, sides.stay.size / ranks, ranks);
  return push_operand("fused", program, mesh, operand, {.count = chunks}, kSend);
}

Checked<Script> gather_push_k(const Program& program, const Mesh& mesh) {
  constexpr Chunks kChunks{.count = 4, .along_k = true};
  return push_operand("push_k", program, mesh, Gathered::A, kChunks, kPush);
}

Checked<Script> gather_hierarchical(const Program& program, const Mesh& mesh, Gathered operand) {
  HP_TRY(const GemmShape shape, read_gemm(program));
  const Sides sides = sides_of(shape, operand);
  MeshPlan plan(mesh);
  const auto [outer, inner] = plan.outer_and_inner(smaller_factor(plan.all().ranks));
  ScheduleBuilder builder("hierarchical", program, plan);
  const auto travel = builder.tile(sides.travel.name, {outer.ranks, inner.ranks}, "t");
  const auto stay = builder.tile(sides.stay.name, {outer.ranks, inner.ranks}, "s");
  builder.shard({sides.moved}, travel[0], outer);
  builder.shard({sides.moved}, travel[1], inner);
  builder.shard({sides.fixed, shape.c}, stay[0], outer);
  builder.shard({sides.fixed, shape.c}, stay[1], inner);
  builder.parallelize(shape.nest, stay[0], outer);
  builder.parallelize(shape.nest, stay[1], inner);
  builder.stage(shape.nest, {sides.moved}, outer, "", kBulk);
  builder.rotate(shape.nest, travel[1], inner);
  builder.stage(shape.nest, {sides.moved}, inner, travel[1], kRelay);
  return builder.take();
}

Checked<Script> gemm_grid2d(const Program& program, const Mesh& mesh) {
  HP_TRY(const GemmShape shape, read_gemm(program));
  MeshPlan plan(mesh);
  const std::int64_t ranks = plan.all().ranks;
  const auto [row, col] = plan.outer_and_inner(ranks / smaller_factor(ranks));
  ScheduleBuilder builder("grid2d", program, plan);
  const auto m = builder.tile(shape.m.name, {row.ranks}, "m");
  const auto n = builder.tile(shape.n.name, {col.ranks}, "n");
  const auto k = builder.tile(shape.k.name, {col.ranks, row.ranks}, "k");
  builder.shard({shape.a, shape.c}, m[0], row);
  builder.shard({shape.a}, k[0], col);
  builder.shard({shape.b}, k[1], row);
  builder.shard({shape.b, shape.c}, n[0], col);
  builder.parallelize(shape.nest, m[0], row);
  builder.parallelize(shape.nest, n[0], col);
  builder.stage(shape.nest, {shape.a}, col, "", kBulk);
  builder.rotate(shape.nest, k[1], row);
  builder.stage(shape.nest, {shape.b}, row, k[1], kRelay);
  return builder.take();
}

}  // namespace harpe
