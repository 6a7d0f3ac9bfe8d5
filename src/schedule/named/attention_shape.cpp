#include "schedule/named/attention_shape.h"

#include <algorithm>

namespace harpe {
namespace {

Diag refuse(const Program& program) {
  return make_diag(DiagCode::S603, {{"program", program.name},
                                    {"expected",
                                     "one nest of one `attn_fwd` statement with q [batch, queries, "
                                     "heads, dim] and k [batch, keys, kv heads, dim]"}});
}

std::optional<SizedAxis> read_axis(const Program& program, const Buffer& buffer, std::size_t dim) {
  const auto* name = std::get_if<std::string>(&buffer.dims[dim]);
  if (name == nullptr) return std::nullopt;
  const Axis* axis = find_axis(program, *name);
  return axis == nullptr ? std::nullopt : std::optional(SizedAxis{*name, size_of(*axis)});
}

// q's axis of query heads inside a KV head, the second of `(Hkv, G)`.
std::optional<SizedAxis> read_group(const Program& program, const Buffer& q) {
  const auto* product = std::get_if<std::vector<std::string>>(&q.dims[2]);
  if (product == nullptr || product->size() != 2) return std::nullopt;
  const Axis* axis = find_axis(program, product->back());
  return axis == nullptr ? std::nullopt : std::optional(SizedAxis{axis->name, size_of(*axis)});
}

}  // namespace

Checked<AttentionShape> read_attention(const Program& program) {
  if (program.nests.size() != 1 || program.nests[0].stmts.size() != 1) return refuse(program);
  const Stmt& stmt = program.nests[0].stmts[0];
  if (stmt.leaf != "attn_fwd" || stmt.operands.size() != 3 || stmt.targets.size() != 2) {
    return refuse(program);
  }
  const Buffer* q = find_buffer(program, stmt.operands[0].buffer);
  const Buffer* k = find_buffer(program, stmt.operands[1].buffer);
  if (q == nullptr || k == nullptr || q->dims.size() != 4 || k->dims.size() != 4) {
    return refuse(program);
  }
  const auto batch = read_axis(program, *q, 0);
  const auto queries = read_axis(program, *q, 1);
  const auto keys = read_axis(program, *k, 1);
  const auto kv_heads = read_axis(program, *k, 2);
  if (!batch || !queries || !keys || !kv_heads) return refuse(program);
  AttentionShape shape;
  shape.nest = program.nests[0].name;
  shape.q = q->name;
  shape.k = k->name;
  shape.v = stmt.operands[2].buffer;
  shape.o = stmt.targets[0].buffer;
  shape.lse = stmt.targets[1].buffer;
  shape.batch = *batch;
  shape.queries = *queries;
  shape.keys = *keys;
  shape.kv_heads = *kv_heads;
  shape.group = read_group(program, *q);
  shape.causal = std::ranges::any_of(
      stmt.masks, [](const Mask& mask) { return mask.call.function == "causal"; });
  return shape;
}

Checked<HeadLevels> deal_heads(MeshPlan& plan, const MeshPlan::Level& level,
                               const AttentionShape& shape, std::string_view schedule) {
  const std::int64_t group = shape.group ? shape.group->size : 1;
  const std::int64_t heads = shape.kv_heads.size * group;
  if (heads < level.ranks) {
    return make_diag(DiagCode::S611, {{"schedule", schedule},
                                      {"heads", heads},
                                      {"ranks", level.ranks},
                                      {"alternatives", "`auto`"}});
  }
  // The more ranks share the KV heads, the fewer hold a copy of the same one.
  for (std::int64_t kv = std::min(level.ranks, shape.kv_heads.size); kv >= 1; --kv) {
    if (level.ranks % kv != 0 || level.ranks / kv > group) continue;
    if (auto levels = plan.cut(level, kv)) return HeadLevels{levels->first, levels->second};
  }
  return make_diag(DiagCode::S612, {{"schedule", schedule},
                                    {"kv_heads", shape.kv_heads.size},
                                    {"group", group},
                                    {"ranks", level.ranks},
                                    {"alternatives", "`auto`"}});
}

}  // namespace harpe
