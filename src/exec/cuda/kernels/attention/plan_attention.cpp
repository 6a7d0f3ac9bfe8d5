#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "exec/cuda/kernels/attention/attention_operands.h"

namespace harpe::cuda {
namespace {

using actions::Loop;

// Operands of Attend's loops, but for the mask's tables.
enum Operand : std::uint8_t { kQ, kK, kV, kO, kL, kOperands };
constexpr std::size_t kAllOperands = kOperands + actions::kMaskTables;

// The mask by positions, as kernels for tensor cores have it; none where they do not.
struct Positions {
  bool causal = false;
  std::int64_t window = 0;
  std::int64_t query = 0;  // position of the first
  std::int64_t key = 0;
  std::optional<PositionRule> rule = {};
};

std::optional<Positions> positions_of(const AttentionProblem& p) {
  Positions positions;
  if (p.visible.prefix >= p.keys) return positions;
  if (p.visible.prefix > 0) return std::nullopt;
  constexpr std::int64_t kFar = Visibility::kUnbounded / 2;
  if (p.visible.high < kFar) {
    const bool is_free_below = p.visible.low < -kFar;
    positions.rule = {.lead = p.visible.high,
                      .window = is_free_below ? 0 : p.visible.high - p.visible.low + 1};
  }
  // Bounds that nothing lies beyond are none.
  const std::int64_t high = std::min(p.visible.high, p.keys - 1);
  const std::int64_t low = std::max(p.visible.low, -(p.queries - 1));
  if (low > high) return std::nullopt;
  const bool bounded_below = low > -(p.queries - 1);
  if (high == p.keys - 1 && !bounded_below) return positions;
  positions.causal = true;
  positions.window = bounded_below ? high - low + 1 : 0;
  positions.query = std::max<std::int64_t>(high, 0);
  positions.key = std::max<std::int64_t>(-high, 0);
  if (positions.query + p.queries > std::numeric_limits<std::int32_t>::max() / 2 ||
      positions.key + p.keys > std::numeric_limits<std::int32_t>::max() / 2) {
    return std::nullopt;
  }
  return positions;
}

// Attention for tensor cores, where its heads, mask and strides are such as they take.
std::optional<AttentionSpec> fast_attention(const AttentionProblem& p,
                                            const Loops<kOperands>& loops,
                                            const LaunchChoice& choice) {
  constexpr std::array<std::size_t, 3> kOfQueries = {kQ, kO, kL};
  constexpr std::array<std::size_t, 2> kOfKeys = {kK, kV};
  const bool half = p.q.dtype == DType::BF16 || p.q.dtype == DType::F16;
  const bool dense = p.q.column_stride == 1 && p.k.column_stride == 1 && p.v.column_stride == 1;
  const auto heads = heads_of<kOperands>(loops, kOfQueries, kOfKeys);
  const std::optional<Positions> positions = positions_of(p);
  if (!half || !dense || !heads || !positions || !(p.scale > 0)) return std::nullopt;
  const auto& [batch, all, kv] = *heads;
  AttentionSpec spec;
  spec.batch = batch.length;
  spec.heads = all.length;
  spec.kv_heads = kv.length;
  spec.query_dim = p.head_dim;
  spec.value_dim = p.value_dim;
  spec.element = p.q.dtype == DType::BF16 ? device::Element::BF16 : device::Element::F16;
  spec.carried = p.carry;
  spec.to_state = true;
  spec.causal = positions->causal;
  spec.window = positions->window;
  spec.rule = positions->rule;
  spec.scale = p.scale;
  AttentionPanelSpec panel;
  panel.rows = p.queries;
  panel.position = positions->query;
  panel.queries = tensor_of(p.q, batch, all, kQ);
  panel.output = tensor_of({p.o, DType::F32, p.o_row_stride}, batch, all, kO);
  panel.lse = tensor_of({p.lse, DType::F32, p.lse_stride}, batch, all, kL);
  if (p.carry) panel.carried_output = panel.output;
  AttentionChunkSpec chunk;
  chunk.rows = p.keys;
  chunk.position = positions->key;
  chunk.keys = tensor_of(p.k, batch, kv, kK);
  chunk.values = tensor_of(p.v, batch, kv, kV);
  spec.panels = {panel};
  spec.chunks = {chunk};
  spec.engine = engine_of(choice.kernel);
  if (spec.engine == LeafEngine::Library) return spec;
  spec = with_groups_as_rows(std::move(spec));
  spec.parts = choose_parts(spec, choice.multiprocessors);
  if (!check(spec, choice.multiprocessors).ok()) return std::nullopt;
  return spec;
}

device::PlainAttentionArgs plain_attention(const AttentionProblem& p, device::Number number) {
  device::PlainAttentionArgs args{};
  args.q = plain(p.q, number);
  args.k = plain(p.k, number);
  args.v = plain(p.v, number);
  args.o_row_stride = p.o_row_stride;
  args.lse_stride = p.lse_stride;
  args.queries = p.queries;
  args.keys = p.keys;
  args.head_dim = p.head_dim;
  args.value_dim = p.value_dim;
  args.scale = p.scale;
  args.mask = plain(p.visible);
  args.carry = p.carry;
  return args;
}

}  // namespace

Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice, const actions::Attend& heads) {
  std::vector<LaunchSpec> launches;
  const AttentionProblem& p = heads.first;
  const auto number = number_of(p.q.dtype);
  if (!number || p.k.dtype != p.q.dtype || p.v.dtype != p.q.dtype) {
    return no_kernel(choice, "attention on `" + std::string(print(p.q.dtype)) + "`");
  }
  Loops<kAllOperands> loops = heads.loops;
  for (Loop<kAllOperands>& loop : loops) loop.reduces = false;  // every turn has its own state
  if (!p.tables.any()) {
    const Loops<kOperands> plain_loops = joined(first_operands<kOperands>(loops));
    if (const auto spec = fast_attention(p, plain_loops, choice)) {
      return std::vector<LaunchSpec>{*spec};
    }
  }
  if (!choice.kernel.empty()) {
    return no_leaf(choice, "attention of `" + std::string(print(p.q.dtype)) +
                               "`, its mask, or heads that lie as they do");
  }
  loops = joined(std::move(loops));
  device::PlainAttentionArgs args = plain_attention(p, *number);
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops, [&](const auto& offsets, const auto& inner) {
        args.q.data = moved(p.q.data, offsets[kQ]);
        args.k.data = moved(p.k.data, offsets[kK]);
        args.v.data = moved(p.v.data, offsets[kV]);
        args.o = moved(p.o, offsets[kO]);
        args.lse = moved(p.lse, offsets[kL]);
        args.tables = tables_of(p.tables, std::span(offsets).template last<actions::kMaskTables>());
        args.nest = nest_of(inner);
        args.turns = turns_of(inner);
        const std::int64_t blocks = divide_up(p.queries, device::kPlainRows) * args.turns;
        if (blocks <= 0) return;
        launches.emplace_back(PlainLaunch{.kernel = PlainKernel::Attention,
                                          .wide = p.q.dtype == DType::F64,
                                          .blocks = as_grid(blocks),
                                          .args = args});
      }));
  return launches;
}

}  // namespace harpe::cuda
