#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <variant>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/attention/attention_operands.h"
#include "exec/cuda/kernels/attention/attention_variants.h"
#include "exec/cuda/kernels/attention/decode.h"
#include "exec/cuda/kernels/plain/plain_operands.h"
#include "offers/gpu_kernels.h"

namespace harpe::cuda {
namespace {

using actions::Loop;

// A mask by positions, as tensor-core kernels have it.
struct Positions {
  bool causal = false;
  std::int64_t window = 0;
  std::int64_t query = 0;  // position of the first query
  std::int64_t key = 0;    // position of the first key
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
  // A bound that hides nothing is dropped.
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

// Attention for tensor cores, if they support its types, heads, mask and strides.
std::optional<AttentionSpec> describe(const AttentionProblem& p,
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
  return spec;
}

// For the kernel for few queries, if it can run the spec.
std::optional<AttentionSpec> with_shares(AttentionSpec spec, const LaunchChoice& choice) {
  spec = with_rows_as_heads(std::move(spec));
  if (!can_decode(spec)) return std::nullopt;
  spec.shares = choose_shares(spec, choice.multiprocessors);
  if (!check(spec, choice.multiprocessors).ok()) return std::nullopt;
  return spec;
}

// Chooses the kernel and the cut of its keys.
std::optional<AttentionSpec> fast_attention(const AttentionProblem& p,
                                            const Loops<kAttendOperands>& loops,
                                            const LaunchChoice& choice) {
  auto described = describe(p, loops, choice);
  if (!described || described->engine == LeafEngine::Library) return described;
  if (const auto spec = with_shares(*described, choice); spec && !is_faster_in_parts(*spec)) {
    return spec;
  }
  AttentionSpec spec = with_groups_as_rows(*std::move(described));
  spec.parts = choose_parts(spec, choice.multiprocessors);
  if (!check(spec, choice.multiprocessors).ok()) return std::nullopt;
  return spec;
}

// Adds the batch loop to a spec whose tensors have no batch entries yet.
void set_batch(AttentionSpec& spec, const actions::Loop<kAllAttendOperands>& batch) {
  const std::int64_t element = device::bytes_of(spec.element);
  constexpr std::int64_t kFloat = 4;
  AttentionPanelSpec& panel = spec.panels.front();
  AttentionChunkSpec& chunk = spec.chunks.front();
  spec.batch = batch.length;
  panel.queries.strides.batch = batch.bytes[kQ] / element;
  panel.output.strides.batch = batch.bytes[kO] / kFloat;
  panel.lse.strides.batch = batch.bytes[kL] / kFloat;
  chunk.keys.strides.batch = batch.bytes[kK] / element;
  chunk.values.strides.batch = batch.bytes[kV] / element;
}

using AllLoops = Loops<kAllAttendOperands>;

// If tables give the keys that exist, the kernel for few queries may run the attention. The loop in
// which the tables have steps is the loop over batch entries.
std::optional<AttentionSpec> fast_attention_by_tables(const AttentionProblem& p, AllLoops loops,
                                                      const LaunchChoice& choice) {
  constexpr std::size_t kLengths = kAttendOperands + 1;
  constexpr std::size_t kPages = kAttendOperands + 2;
  constexpr std::int64_t kEntry = 4;
  if (p.tables.documents.exists()) return std::nullopt;
  const auto steps = [](const actions::Loop<kAllAttendOperands>& loop) {
    return loop.bytes[kLengths] != 0 || loop.bytes[kPages] != 0;
  };
  actions::Loop<kAllAttendOperands> batch;
  if (const auto found = std::ranges::find_if(loops, steps); found != loops.end()) {
    batch = *found;
    loops.erase(found);
    if (std::ranges::any_of(loops, steps)) return std::nullopt;
  }
  auto spec = describe(p, joined(first_operands<kAttendOperands>(loops)), choice);
  if (!spec || (spec->batch > 1 && batch.length > 1) || spec->engine != LeafEngine::Own) {
    return std::nullopt;
  }
  if (batch.length > 1) set_batch(*spec, batch);
  spec->tables = KeyTables{.lengths = address_of(p.tables.length.data),
                           .length_stride = batch.bytes[kLengths] / kEntry,
                           .pages = address_of(p.tables.pages.data),
                           .page_stride = p.tables.pages.stride,
                           .batch_stride = batch.bytes[kPages] / kEntry,
                           .page_count = p.tables.page_count,
                           .page = p.tables.page,
                           .first_key = p.tables.first_key};
  return with_shares(*std::move(spec), choice);
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
    for (Loop<kAttendOperands>& loop : loops) loop.reduces = false;  // each iteration has a state
    if (const auto spec = fast_attention(p, joined(std::move(loops)), choice)) {
      return std::optional(LaunchSpecs{*spec});
    }
  } else {
    AllLoops loops = heads->loops;
    for (Loop<kAllAttendOperands>& loop : loops) loop.reduces = false;
    if (const auto spec = fast_attention_by_tables(p, joined(std::move(loops)), choice)) {
      return std::optional(LaunchSpecs{*spec});
    }
  }
  if (choice.kernel.empty()) return std::optional<LaunchSpecs>();
  return no_leaf(choice, "it takes no operands of `" + std::string(print(p.q.dtype)) +
                             "`, not this mask, or not this layout of heads");
}

// Whether the kernel is the one for few queries and exchanges states; only then it bounds epochs.
bool exchanges_states(const launch::Kernel& kernel) {
  return kernel.name == kAttentionSm90 && kernel.variant.starts_with("keys in") &&
         std::ranges::any_of(kernel.panels, [](const launch::Panel& panel) {
           return panel.fused_store || !panel.addends.empty();
         });
}

}  // namespace

KernelFamily attention_family() {
  return {.plan = plan_heads, .variants = attention_variants, .bounds_epochs = exchanges_states};
}

}  // namespace harpe::cuda
