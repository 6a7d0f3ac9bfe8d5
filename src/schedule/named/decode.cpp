#include "schedule/named/decode.h"

#include <algorithm>
#include <array>

#include "schedule/named/attention_shape.h"
#include "schedule/named/builder.h"

namespace harpe {
namespace {

using Level = MeshPlan::Level;

constexpr Transfer kReduce{How::Bulk, std::nullopt, std::nullopt, Via::Sm, std::nullopt};
constexpr Transfer kFetchTiles{How::Direct, Initiator::Dst, 2, Via::Ce, Signal::Event};
constexpr Transfer kPushTiles{How::Direct, Initiator::Src, 2, Via::Sm, Signal::Flag};

// `(o, lse) lse= attn_fwd(q, k, v)` with q [batch, (KV heads, group), dim]. k and v belong to each
// batch entry or, without their first dimension, to all.
struct DecodeShape {
  std::string nest;
  std::vector<std::string> cache;    // k, v; k alone if it holds the values too
  std::vector<std::string> results;  // o, lse
  std::string keys;
  std::array<SizedAxis, 3> owners;  // axes that may divide results: KV heads, group, batch

  // The first with a block for every rank, else the longest.
  [[nodiscard]] const SizedAxis& owner(std::int64_t ranks) const {
    const auto* const fits =
        std::ranges::find_if(owners, [&](const SizedAxis& axis) { return axis.size >= ranks; });
    return fits != owners.end() ? *fits : *std::ranges::max_element(owners, {}, &SizedAxis::size);
  }
};

Checked<DecodeShape> read_decode(const Program& program) {
  const auto refused = [&] {
    return make_diag(DiagCode::S603,
                     {{"program", program.name},
                      {"expected",
                       "one nest of one `attn_fwd` statement with q [batch, (kv heads, group), "
                       "dim] and k [batch, keys, kv heads, dim] or [keys, kv heads, dim]"}});
  };
  if (program.nests.size() != 1 || program.nests[0].stmts.size() != 1) return refused();
  const Stmt& stmt = program.nests[0].stmts[0];
  if (!is_leaf(stmt.leaf, Leaf::AttentionForward) || stmt.operands.size() != 3) return refused();
  const Buffer* const q = find_buffer(program, stmt.operands[0].buffer);
  const Buffer* const k = find_buffer(program, stmt.operands[1].buffer);
  if (q->dims.size() != 3 || (k->dims.size() != 4 && k->dims.size() != 3)) return refused();
  const auto* const batch = std::get_if<std::string>(&q->dims[0]);
  const auto* const heads = std::get_if<std::vector<std::string>>(&q->dims[1]);
  const auto* const keys = std::get_if<std::string>(&k->dims[k->dims.size() - 3]);
  if (batch == nullptr || heads == nullptr || heads->size() != 2 || keys == nullptr) {
    return refused();
  }
  const auto sized = [&](const std::string& name) {
    return SizedAxis{name, size_of(*find_axis(program, name))};
  };
  DecodeShape shape{.nest = program.nests[0].name,
                    .cache = {stmt.operands[1].buffer, stmt.operands[2].buffer},
                    .results = {},
                    .keys = *keys,
                    .owners = {sized(heads->front()), sized(heads->back()), sized(*batch)}};
  if (shape.cache.front() == shape.cache.back()) shape.cache.pop_back();
  for (const Access& target : stmt.targets) shape.results.push_back(target.buffer);
  return shape;
}

// Keys divided over all ranks; results divided by blocks of the owners' axis.
struct Decode {
  DecodeShape shape;
  ScheduleBuilder builder;
  Level all;
  std::string block;  // digit of the results
};

Checked<Decode> divide(std::string_view schedule, const Program& program, const Mesh& mesh) {
  HP_TRY(DecodeShape shape, read_decode(program));
  const MeshPlan plan(mesh);
  Decode out{std::move(shape), ScheduleBuilder(schedule, program, plan), plan.all(), ""};
  const std::int64_t ranks = out.all.ranks;
  out.block = out.builder.tile(out.shape.owner(ranks).name, {ranks}, "h")[0];
  const auto keys = out.builder.tile(out.shape.keys, {ranks}, "k");
  out.builder.shard(out.shape.cache, keys[0], out.all);
  out.builder.parallelize(out.shape.nest, keys[0], out.all);
  return out;
}

Checked<Script> decode_bulk(const Program& program, const Mesh& mesh) {
  HP_TRY(Decode decode, divide("bulk", program, mesh));
  decode.builder.shard(decode.shape.results, decode.block, decode.all);
  decode.builder.drain(decode.shape.nest, decode.shape.results, decode.all, "", kReduce);
  return decode.builder.take();
}

Checked<Script> decode_allreduce(const Program& program, const Mesh& mesh) {
  HP_TRY(Decode decode, divide("allreduce", program, mesh));
  decode.builder.drain(decode.shape.nest, decode.shape.results, decode.all, "", kReduce);
  return decode.builder.take();
}

// Rotates tile by tile. Each rank starts with its successor's tile, so its own tile comes last,
// complete.
Checked<Script> rotate(std::string_view schedule, const Program& program, const Mesh& mesh,
                       const Transfer& transfer) {
  HP_TRY(Decode decode, divide(schedule, program, mesh));
  decode.builder.shard(decode.shape.results, decode.block, decode.all);
  decode.builder.rotate(decode.shape.nest, decode.block, decode.all, 1);
  decode.builder.drain(decode.shape.nest, decode.shape.results, decode.all, decode.block, transfer);
  return decode.builder.take();
}

Checked<Script> decode_ring(const Program& program, const Mesh& mesh) {
  return rotate("ring", program, mesh, kRelay);
}
Checked<Script> decode_fetch(const Program& program, const Mesh& mesh) {
  return rotate("fetch", program, mesh, kFetchTiles);
}
Checked<Script> decode_push(const Program& program, const Mesh& mesh) {
  return rotate("push", program, mesh, kPushTiles);
}

Checked<Script> decode_hierarchical(const Program& program, const Mesh& mesh) {
  HP_TRY(const DecodeShape shape, read_decode(program));
  MeshPlan plan(mesh);
  const auto [outer, inner] = plan.outer_and_inner(smaller_factor(plan.all().ranks));
  ScheduleBuilder builder("hierarchical", program, plan);
  const auto block =
      builder.tile(shape.owner(plan.all().ranks).name, {outer.ranks, inner.ranks}, "h");
  const auto keys = builder.tile(shape.keys, {outer.ranks, inner.ranks}, "k");
  builder.shard(shape.cache, keys[0], outer);
  builder.shard(shape.cache, keys[1], inner);
  builder.shard(shape.results, block[0], outer);
  builder.shard(shape.results, block[1], inner);
  builder.parallelize(shape.nest, keys[0], outer);
  builder.parallelize(shape.nest, keys[1], inner);
  builder.drain(shape.nest, shape.results, inner, "", kReduce);
  builder.drain(shape.nest, shape.results, outer, "", kReduce);
  return builder.take();
}

constexpr std::array kDecodeSchedules = {
    NamedSchedule{"bulk", "partial (o, lse) combined at the heads' owners, once", &decode_bulk},
    NamedSchedule{"allreduce", "partial (o, lse) combined block by block and gathered everywhere",
                  &decode_allreduce},
    NamedSchedule{"ring",
                  "a partial (o, lse) per block of heads travels round all ranks and ends "
                  "at its owner",
                  &decode_ring},
    NamedSchedule{"fetch", "partial blocks fetched and combined by their owner", &decode_fetch},
    NamedSchedule{"push", "partial blocks pushed to their owner as they are made", &decode_push},
    NamedSchedule{"hierarchical",
                  "combined over the inner mesh axes, then over the first; one axis of P ranks is "
                  "u x P/u (8: 2x4)",
                  &decode_hierarchical},
};

}  // namespace

std::span<const NamedSchedule> decode_schedules() { return kDecodeSchedules; }

}  // namespace harpe
