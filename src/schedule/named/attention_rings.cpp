#include "schedule/named/attention.h"

#include <algorithm>

#include "schedule/named/attention_shape.h"
#include "schedule/named/builder.h"

namespace harpe {
namespace {

using Level = MeshPlan::Level;

// Chunks of each rank's keys: the first query rows wait for only one chunk of them.
constexpr std::int64_t kRingPushChunks = 2;

// Common to the one-level schedules: positions over all ranks.
struct OneLevel {
  ScheduleBuilder builder;
  Level all;
  std::vector<std::string> queries;
  std::vector<std::string> keys;
};

OneLevel place_positions(std::string_view schedule, const Program& program, const MeshPlan& plan,
                         const AttentionShape& shape, const std::vector<std::int64_t>& inner = {}) {
  OneLevel out{ScheduleBuilder(schedule, program, plan), plan.all(), {}, {}};
  std::vector<std::int64_t> factors{out.all.ranks};
  factors.insert(factors.end(), inner.begin(), inner.end());
  out.queries = out.builder.tile(shape.queries.name, factors, "q");
  out.keys = out.builder.tile(shape.keys.name, factors, "k");
  out.builder.shard(shape.by_query, out.queries[0], out.all);
  out.builder.shard(shape.by_key, out.keys[0], out.all);
  for (const std::string& nest : shape.row_nests) {
    out.builder.parallelize(nest, out.queries[0], out.all);
  }
  return out;
}

Script build_ring(OneLevel parts, const AttentionShape& shape) {
  ScheduleBuilder& builder = parts.builder;
  builder.parallelize(shape.nest, parts.queries[0], parts.all);
  builder.rotate(shape.nest, parts.keys[0], parts.all);
  builder.stage(shape.nest, shape.key_inputs, parts.all, parts.keys[0], kRelay);
  builder.drain(shape.nest, shape.key_results, parts.all, parts.keys[0], kTravel);
  return builder.take();
}

// Pushes keys in chunks to all ranks; one kernel per rank uses each chunk as it arrives.
Script build_push(OneLevel parts, const AttentionShape& shape) {
  ScheduleBuilder& builder = parts.builder;
  const MeshRef over = builder.axes(parts.all);
  builder.parallelize(shape.nest, parts.queries[0], parts.all);
  builder.stage(shape.nest, shape.key_inputs, parts.all, "", kPush);
  builder.add(ChunkMove{shape.nest, shape.key_inputs, over, std::nullopt, parts.keys[1]});
  std::vector<std::string> order{parts.keys[0]};
  order.insert(order.end(), over.begin(), over.end());
  builder.add(ChunkLeaf{shape.nest, "leaf", parts.keys[1], order});
  builder.add(FuseNests{shape.nest + "_fused", {shape.nest}, true, std::nullopt, std::nullopt});
  return builder.take();
}

// The same, but with one kernel per source of keys, the own keys first. So no kernel keeps queries
// waiting for the last keys.
Script build_stream(OneLevel parts, const AttentionShape& shape) {
  ScheduleBuilder& builder = parts.builder;
  builder.parallelize(shape.nest, parts.queries[0], parts.all);
  builder.rotate(shape.nest, parts.keys[0], parts.all);
  builder.stage(shape.nest, shape.key_inputs, parts.all, "", kPush);
  return builder.take();
}

// Gives each rank a block of queries and of keys from the front, and one from the back.
Checked<OneLevel> place_zigzag(std::string_view schedule, const Program& program, const Mesh& mesh,
                               const AttentionShape& shape) {
  if (!shape.causal) {
    return make_diag(DiagCode::S614, {{"schedule", schedule}, {"alternatives", "`auto`"}});
  }
  const MeshPlan plan(mesh);
  const std::int64_t positions = std::min(shape.queries.size, shape.keys.size);
  if (positions < 2 * plan.all().ranks) {
    return make_diag(DiagCode::S613, {{"schedule", schedule},
                                      {"positions", positions},
                                      {"ranks", plan.all().ranks},
                                      {"alternatives", "`auto`"}});
  }
  OneLevel parts = place_positions(schedule, program, plan, shape, {2});
  parts.builder.balance(shape.queries.name, {parts.queries[0], parts.queries[1]});
  parts.builder.balance(shape.keys.name, {parts.keys[0], parts.keys[1]});
  return parts;
}

struct TwoLevels {
  ScheduleBuilder builder;
  Level outer;
  Level inner;
  std::vector<std::string> keys;
};

TwoLevels place_on_two(std::string_view schedule, const Program& program, MeshPlan& plan,
                       const AttentionShape& shape) {
  const auto [outer, inner] = plan.outer_and_inner(smaller_factor(plan.all().ranks));
  TwoLevels out{ScheduleBuilder(schedule, program, plan), outer, inner, {}};
  const auto queries = out.builder.tile(shape.queries.name, {outer.ranks, inner.ranks}, "q");
  out.keys = out.builder.tile(shape.keys.name, {outer.ranks, inner.ranks}, "k");
  out.builder.shard(shape.by_query, queries[0], outer);
  out.builder.shard(shape.by_query, queries[1], inner);
  out.builder.shard(shape.by_key, out.keys[0], outer);
  out.builder.shard(shape.by_key, out.keys[1], inner);
  for (const std::string& nest : shape.row_nests) {
    out.builder.parallelize(nest, queries[0], outer);
    out.builder.parallelize(nest, queries[1], inner);
  }
  out.builder.parallelize(shape.nest, queries[0], outer);
  out.builder.parallelize(shape.nest, queries[1], inner);
  return out;
}

}  // namespace

Checked<Script> attention_ring(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  return build_ring(place_positions("ring", program, MeshPlan(mesh), shape), shape);
}

Checked<Script> attention_zigzag_ring(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  HP_TRY(OneLevel parts, place_zigzag("zigzag_ring", program, mesh, shape));
  return build_ring(std::move(parts), shape);
}

Checked<Script> attention_allgather(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  OneLevel parts = place_positions("allgather", program, MeshPlan(mesh), shape);
  parts.builder.parallelize(shape.nest, parts.queries[0], parts.all);
  parts.builder.stage(shape.nest, shape.key_inputs, parts.all, "", kBulk);
  parts.builder.drain(shape.nest, shape.key_results, parts.all, "", kBulk);
  return parts.builder.take();
}

Checked<Script> attention_push(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  const MeshPlan plan(mesh);
  const std::int64_t bytes =
      bytes_of(program, shape.key_inputs.front()) / plan.all().ranks;  // of one source
  const std::int64_t chunks = push_chunks(bytes, kRingPushChunks);
  return build_push(place_positions("push", program, plan, shape, {chunks}), shape);
}

Checked<Script> attention_zigzag_push(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  HP_TRY(OneLevel parts, place_zigzag("zigzag_push", program, mesh, shape));
  return build_push(std::move(parts), shape);
}

Checked<Script> attention_stream(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  return build_stream(place_positions("stream", program, MeshPlan(mesh), shape), shape);
}

Checked<Script> attention_zigzag_stream(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  HP_TRY(OneLevel parts, place_zigzag("zigzag_stream", program, mesh, shape));
  return build_stream(std::move(parts), shape);
}

Checked<Script> attention_q_rotation(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  OneLevel parts = place_positions("q_rotation", program, MeshPlan(mesh), shape);
  parts.builder.parallelize(shape.nest, parts.keys[0], parts.all);
  parts.builder.rotate(shape.nest, parts.queries[0], parts.all);
  parts.builder.stage(shape.nest, shape.query_inputs, parts.all, parts.queries[0], kRelay);
  parts.builder.drain(shape.nest, shape.query_results, parts.all, parts.queries[0], kTravel);
  return parts.builder.take();
}

Checked<Script> attention_double_ring(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  MeshPlan plan(mesh);
  TwoLevels parts = place_on_two("double_ring", program, plan, shape);
  parts.builder.rotate(shape.nest, parts.keys[0], parts.outer);
  parts.builder.rotate(shape.nest, parts.keys[1], parts.inner);
  parts.builder.stage(shape.nest, shape.key_inputs, parts.outer, parts.keys[0], kRelay);
  parts.builder.drain(shape.nest, shape.key_results, parts.outer, parts.keys[0], kTravel);
  parts.builder.stage(shape.nest, shape.key_inputs, parts.inner, parts.keys[1], kRelay);
  parts.builder.drain(shape.nest, shape.key_results, parts.inner, parts.keys[1], kTravel);
  return parts.builder.take();
}

Checked<Script> attention_hybrid(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  MeshPlan plan(mesh);
  TwoLevels parts = place_on_two("hybrid", program, plan, shape);
  parts.builder.stage(shape.nest, shape.key_inputs, parts.outer, "", kBulk);
  parts.builder.drain(shape.nest, shape.key_results, parts.outer, "", kBulk);
  parts.builder.rotate(shape.nest, parts.keys[1], parts.inner);
  parts.builder.stage(shape.nest, shape.key_inputs, parts.inner, parts.keys[1], kRelay);
  parts.builder.drain(shape.nest, shape.key_results, parts.inner, parts.keys[1], kTravel);
  return parts.builder.take();
}

}  // namespace harpe
