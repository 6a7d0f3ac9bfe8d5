#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <variant>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/attention/attention_operands.h"
#include "exec/cuda/kernels/attention/attention_variants.h"
#include "exec/cuda/kernels/plain/plain_operands.h"

namespace harpe::cuda {
namespace {

using actions::Loop;

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
                                            const Loops<kAttendOperands>& loops,
                                            const LaunchChoice& choice) {
  constexpr std::array<std::size_t, 3> kOfQueries = {kQ, kO, kL};
  constexpr std::array<std::size_t, 2> kOfKeys = {kK, kV};
  const bool half = p.q.dtype == DType::BF16 || p.q.dtype == DType::F16;
  const bool dense = p.q.column_stride == 1 && p.k.column_stride == 1 && p.v.column_stride == 1;
  const auto heads = heads_of<kAttendOperands>(loops, kOfQueries, kOfKeys);
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

Checked<std::optional<LaunchSpecs>> plan_heads(const LaunchChoice& choice,
                                               const actions::Action& action) {
  const auto* const heads = std::get_if<actions::Attend>(&action);
  if (heads == nullptr) return std::optional<LaunchSpecs>();
  const AttentionProblem& p = heads->first;
  if (!number_of(p.q.dtype) || p.k.dtype != p.q.dtype || p.v.dtype != p.q.dtype) {
    return std::optional<LaunchSpecs>();
  }
  if (!p.tables.any()) {
    Loops<kAttendOperands> loops = first_operands<kAttendOperands>(heads->loops);
    for (Loop<kAttendOperands>& loop : loops) loop.reduces = false;  // every turn has its own state
    if (const auto spec = fast_attention(p, joined(std::move(loops)), choice)) {
      return std::optional(LaunchSpecs{*spec});
    }
  }
  if (choice.kernel.empty()) return std::optional<LaunchSpecs>();
  return no_leaf(choice, "attention of `" + std::string(print(p.q.dtype)) +
                             "`, its mask, or heads that lie as they do");
}

}  // namespace

KernelFamily attention_family() { return {.plan = plan_heads, .variants = attention_variants}; }

}  // namespace harpe::cuda
