#include <algorithm>
#include <array>

#include "schedule/named/attention.h"
#include "schedule/named/attention_shape.h"
#include "schedule/named/builder.h"

namespace harpe {
namespace {

using Level = MeshPlan::Level;

constexpr Transfer kFold{How::Bulk, std::nullopt, std::nullopt, Via::Sm, std::nullopt};
constexpr Transfer kExchange{How::Direct, Initiator::Dst, 2, Via::Ce, Signal::Event};
constexpr Transfer kReturn{How::Direct, Initiator::Src, 2, Via::Ce, Signal::Event};

// Tiles the head axes for their levels. A digit is "" if its level is empty.
struct HeadDigits {
  std::string kv;
  std::string group;
};

HeadDigits tile_heads(ScheduleBuilder& builder, const AttentionShape& shape,
                      const HeadLevels& levels) {
  HeadDigits digits;
  if (!levels.kv.empty()) {
    digits.kv = builder.tile(shape.kv_heads.name, {levels.kv.ranks}, "h")[0];
  }
  if (!levels.group.empty()) {
    digits.group = builder.tile(shape.group->name, {levels.group.ranks}, "g")[0];
  }
  return digits;
}

void parallelize_heads(ScheduleBuilder& builder, const AttentionShape& shape,
                       const HeadLevels& levels, const HeadDigits& digits) {
  builder.parallelize(shape.nest, digits.kv, levels.kv);
  builder.parallelize(shape.nest, digits.group, levels.group);
}

// Exchanges positions for heads before the leaf, and heads for positions after it.
void exchange_heads(ScheduleBuilder& builder, const AttentionShape& shape, const Level& level) {
  BufferNames inputs = shape.query_inputs;
  inputs.insert(inputs.end(), shape.key_inputs.begin(), shape.key_inputs.end());
  BufferNames results = shape.query_results;
  results.insert(results.end(), shape.key_results.begin(), shape.key_results.end());
  builder.stage(shape.nest, inputs, level, "", kBulk);
  builder.drain(shape.nest, results, level, "", kBulk);
}

// Factors a single mesh axis: the Ulysses part is the largest divisor, up to the square root, that
// the heads allow.
std::pair<Level, HeadLevels> factor_one_axis(MeshPlan& plan, const AttentionShape& shape) {
  const std::int64_t ranks = plan.all().ranks;
  for (std::int64_t heads = smaller_factor(ranks);; --heads) {
    if (ranks % heads != 0) continue;
    MeshPlan attempt = plan;
    const auto [ring, ulysses] = attempt.outer_and_inner(ranks / heads);
    const auto levels = deal_heads(attempt, ulysses, shape, "usp");
    if (!levels.ok()) continue;  // one rank always fits
    plan = attempt;
    return {ring, *levels};
  }
}

Level join_levels(const Level& first, const Level& second) {
  Level out = first;
  out.parts.insert(out.parts.end(), second.parts.begin(), second.parts.end());
  out.ranks *= second.ranks;
  return out;
}

// Three levels of at least two ranks each, major first; none if that is impossible.
std::optional<std::array<Level, 3>> three_levels(MeshPlan& plan) {
  Level rest = plan.all();
  std::array<Level, 3> levels;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t axes = static_cast<std::int64_t>(rest.parts.size());
    const auto wanted = static_cast<std::int64_t>(levels.size() - i);
    // One axis per level if there are enough axes, else the smallest factor of the rest.
    const bool whole = axes >= wanted;
    std::int64_t size = 2;
    if (whole) {
      size = plan.size_of(rest.parts[0]);
    } else {
      while (size < rest.ranks && rest.ranks % size != 0) ++size;
    }
    if (size < 2 || size >= rest.ranks) return std::nullopt;
    auto cut = plan.cut(rest, size);
    if (!cut) return std::nullopt;
    levels[i] = cut->first;
    rest = cut->second;
  }
  levels[2] = rest;
  return levels;
}

Diag refuse_levels(std::string_view schedule, std::int64_t levels, const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes) {
    text += (text.empty() ? "`" : ", ") + axis.name + ":" + std::to_string(axis.size);
  }
  return make_diag(DiagCode::S615, {{"schedule", schedule},
                                    {"levels", levels},
                                    {"mesh", text + "`"},
                                    {"alternatives", "`auto`"}});
}

}  // namespace

Checked<Script> attention_ulysses(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  MeshPlan plan(mesh);
  HP_TRY(const HeadLevels levels, deal_heads(plan, plan.all(), shape, "ulysses"));
  const Level all = plan.all();
  ScheduleBuilder builder("ulysses", program, plan);
  const auto queries = builder.tile(shape.queries.name, {all.ranks}, "q");
  const auto keys = builder.tile(shape.keys.name, {all.ranks}, "k");
  const HeadDigits heads = tile_heads(builder, shape, levels);
  builder.shard(shape.by_query, queries[0], all);
  builder.shard(shape.by_key, keys[0], all);
  for (const std::string& nest : shape.row_nests) builder.parallelize(nest, queries[0], all);
  parallelize_heads(builder, shape, levels, heads);
  exchange_heads(builder, shape, all);
  return builder.take();
}

Checked<Script> attention_usp(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  MeshPlan plan(mesh);
  Level ring;
  HeadLevels levels;
  if (mesh.axes.size() == 1) {
    std::tie(ring, levels) = factor_one_axis(plan, shape);
  } else {
    const auto [outer, inner] = plan.outer_and_inner(1);
    ring = outer;
    HP_TRY(levels, deal_heads(plan, inner, shape, "usp"));
  }
  const Level ulysses = join_levels(levels.kv, levels.group);
  ScheduleBuilder builder("usp", program, plan);
  const auto queries = builder.tile(shape.queries.name, {ring.ranks, ulysses.ranks}, "q");
  const auto keys = builder.tile(shape.keys.name, {ring.ranks, ulysses.ranks}, "k");
  const HeadDigits heads = tile_heads(builder, shape, levels);
  builder.shard(shape.by_query, queries[0], ring);
  builder.shard(shape.by_query, queries[1], ulysses);
  builder.shard(shape.by_key, keys[0], ring);
  builder.shard(shape.by_key, keys[1], ulysses);
  for (const std::string& nest : shape.row_nests) {
    builder.parallelize(nest, queries[0], ring);
    builder.parallelize(nest, queries[1], ulysses);
  }
  builder.parallelize(shape.nest, queries[0], ring);
  parallelize_heads(builder, shape, levels, heads);
  exchange_heads(builder, shape, ulysses);
  builder.rotate(shape.nest, keys[0], ring);
  builder.stage(shape.nest, shape.key_inputs, ring, keys[0], kRelay);
  builder.drain(shape.nest, shape.key_results, ring, keys[0], kTravel);
  return builder.take();
}

Checked<Script> attention_tree(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  MeshPlan plan(mesh);
  const auto levels = deal_heads(plan, plan.all(), shape, "tree");
  const Level all = plan.all();
  ScheduleBuilder builder("tree", program, plan);
  const auto keys = builder.tile(shape.keys.name, {all.ranks}, "k");
  builder.shard(shape.by_key, keys[0], all);
  if (levels.ok()) {
    const HeadDigits heads = tile_heads(builder, shape, *levels);
    builder.shard(shape.query_results, heads.kv, levels->kv);
    builder.shard(shape.query_results, heads.group, levels->group);
  } else {
    // A replicated result is reduced and gathered block by block (commir.md D14); this adds the
    // digit.
    const SizedAxis& widest = shape.queries.size >= shape.batch.size ? shape.queries : shape.batch;
    builder.tile(widest.name, {all.ranks}, "s");
  }
  builder.parallelize(shape.nest, keys[0], all);
  builder.drain(shape.nest, shape.query_results, all, "", kFold);
  return builder.take();
}

Checked<Script> attention_mercury_novel8(const Program& program, const Mesh& mesh) {
  HP_TRY(const AttentionShape shape, read_attention(program));
  MeshPlan plan(mesh);
  const std::int64_t ranks = plan.all().ranks;
  const auto [row, col] = plan.outer_and_inner(ranks / smaller_factor(ranks));
  if (row.ranks < 2 || col.ranks < 2) return refuse_levels("mercury_novel8", 2, mesh);
  ScheduleBuilder builder("mercury_novel8", program, plan);
  const auto queries = builder.tile(shape.queries.name, {row.ranks, col.ranks}, "q");
  const auto keys = builder.tile(shape.keys.name, {col.ranks, row.ranks}, "k");
  builder.shard(shape.by_query, queries[0], row);
  builder.shard(shape.by_query, queries[1], col);
  builder.shard(shape.by_key, keys[0], col);
  builder.shard(shape.by_key, keys[1], row);
  builder.parallelize(shape.nest, keys[0], col);
  builder.parallelize(shape.nest, queries[0], row);
  builder.rotate(shape.nest, queries[1], col);
  builder.rotate(shape.nest, keys[1], row);
  builder.stage(shape.nest, shape.query_inputs, col, queries[1], kRelay);
  builder.drain(shape.nest, shape.query_results, col, queries[1], kRelay);
  builder.stage(shape.nest, shape.key_inputs, row, keys[1], kRelay);
  return builder.take();
}

Checked<Script> attention_mercury_best_latency(const Program& program, const Mesh& mesh) {
  constexpr std::string_view kSchedule = "mercury_best_latency";
  HP_TRY(const AttentionShape shape, read_attention(program));
  MeshPlan plan(mesh);
  const auto levels = three_levels(plan);
  if (!levels) return refuse_levels(kSchedule, 3, mesh);
  const auto& [node, exchange, ring] = *levels;
  if (shape.kv_heads.size < node.ranks * exchange.ranks) {
    return make_diag(DiagCode::S611, {{"schedule", kSchedule},
                                      {"heads", shape.kv_heads.size},
                                      {"ranks", node.ranks * exchange.ranks},
                                      {"alternatives", "`auto`"}});
  }
  ScheduleBuilder builder(kSchedule, program, plan);
  const auto queries = builder.tile(shape.queries.name, {exchange.ranks, ring.ranks}, "q");
  const auto keys = builder.tile(shape.keys.name, {ring.ranks}, "k");
  const auto heads = builder.tile(shape.kv_heads.name, {node.ranks, exchange.ranks}, "h");
  builder.shard(shape.by_query, heads[0], node);
  builder.shard(shape.by_key, heads[0], node);
  builder.shard(shape.by_query, queries[0], exchange);
  builder.shard(shape.by_query, queries[1], ring);
  builder.shard(shape.by_key, heads[1], exchange);
  builder.shard(shape.by_key, keys[0], ring);
  builder.parallelize(shape.nest, heads[0], node);
  builder.parallelize(shape.nest, heads[1], exchange);
  builder.parallelize(shape.nest, keys[0], ring);
  builder.rotate(shape.nest, queries[0], exchange);
  builder.rotate(shape.nest, queries[1], ring);
  builder.stage(shape.nest, shape.query_inputs, exchange, queries[0], kExchange);
  builder.drain(shape.nest, shape.query_results, exchange, queries[0], kReturn);
  builder.stage(shape.nest, shape.query_inputs, ring, queries[1], kRelay);
  builder.drain(shape.nest, shape.query_results, ring, queries[1], kRelay);
  return builder.take();
}

}  // namespace harpe
