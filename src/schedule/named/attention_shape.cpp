#include "schedule/named/attention_shape.h"

#include <algorithm>

namespace harpe {
namespace {

Diag refuse(const Program& program) {
  return make_diag(DiagCode::S603, {{"program", program.name},
                                    {"expected",
                                     "one nest of one `attn_fwd` or `attn_bwd` statement with q "
                                     "[batch, queries, heads, dim] and k [batch, keys, kv heads, "
                                     "dim], and nests of queries alone"}});
}

std::optional<SizedAxis> read_axis(const Program& program, const Buffer& buffer, std::size_t dim) {
  const auto* name = std::get_if<std::string>(&buffer.dims[dim]);
  if (name == nullptr) return std::nullopt;
  const Axis* axis = find_axis(program, *name);
  return axis == nullptr ? std::nullopt : std::optional(SizedAxis{*name, size_of(*axis)});
}

// The axis of query heads per KV head: the second axis of `(Hkv, G)` in q.
std::optional<SizedAxis> read_group(const Program& program, const Buffer& q) {
  const auto* product = std::get_if<std::vector<std::string>>(&q.dims[2]);
  if (product == nullptr || product->size() != 2) return std::nullopt;
  const Axis* axis = find_axis(program, product->back());
  return axis == nullptr ? std::nullopt : std::optional(SizedAxis{axis->name, size_of(*axis)});
}

// The one nest with queries and keys; none if there are several.
const Nest* read_nest(const Program& program) {
  const Nest* found = nullptr;
  for (const Nest& nest : program.nests) {
    const std::string& leaf = nest.stmts.front().leaf;
    if (!is_leaf(leaf, Leaf::AttentionForward) && !is_leaf(leaf, Leaf::AttentionBackward)) continue;
    if (found != nullptr || nest.stmts.size() != 1) return nullptr;
    found = &nest;
  }
  return found;
}

bool has_axis(const Program& program, const std::string& buffer, const std::string& axis) {
  const std::vector<std::string> axes = axis_names(*find_buffer(program, buffer));
  return std::ranges::find(axes, axis) != axes.end();
}

// The buffers of `accesses` that have `axis`.
BufferNames with_axis(const Program& program, const std::vector<Access>& accesses,
                      const std::string& axis) {
  BufferNames names;
  for (const Access& access : accesses) {
    if (has_axis(program, access.buffer, axis)) names.push_back(access.buffer);
  }
  return names;
}

}  // namespace

Checked<AttentionShape> read_attention(const Program& program) {
  const Nest* nest = read_nest(program);
  if (nest == nullptr || nest->stmts.front().operands.size() < 3) return refuse(program);
  const Stmt& stmt = nest->stmts.front();
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
  shape.nest = nest->name;
  shape.batch = *batch;
  shape.queries = *queries;
  shape.keys = *keys;
  shape.kv_heads = *kv_heads;
  shape.group = read_group(program, *q);
  shape.causal = std::ranges::any_of(
      stmt.masks, [](const Mask& mask) { return mask.call.function == "causal"; });
  for (const Buffer* buffer : buffers_of(program)) {
    const bool by_query = has_axis(program, buffer->name, queries->name);
    const bool by_key = has_axis(program, buffer->name, keys->name);
    if (by_query && by_key) return refuse(program);
    if (by_query) shape.by_query.push_back(buffer->name);
    if (by_key) shape.by_key.push_back(buffer->name);
  }
  shape.query_inputs = with_axis(program, stmt.operands, queries->name);
  shape.key_inputs = with_axis(program, stmt.operands, keys->name);
  shape.query_results = with_axis(program, stmt.targets, queries->name);
  shape.key_results = with_axis(program, stmt.targets, keys->name);
  for (const Nest& other : program.nests) {
    if (&other == nest) continue;
    if (std::ranges::find(other.over, queries->name) == other.over.end()) return refuse(program);
    if (std::ranges::find(other.over, keys->name) != other.over.end()) return refuse(program);
    shape.row_nests.push_back(other.name);
  }
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
  // The more ranks divide the KV heads, the fewer ranks copy the same head.
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
