#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "exec/cuda/actions/loop_nests.h"

namespace harpe::cuda {
namespace {

using actions::Loop;

device::PlainMatrix plain(const MatrixView& matrix, device::Number number) {
  return {.data = matrix.data,
          .number = number,
          .row_stride = matrix.row_stride,
          .column_stride = matrix.column_stride};
}

device::PlainMask plain(const Visibility& visible) {
  return {.low = visible.low, .high = visible.high, .prefix = visible.prefix};
}

device::PlainTable plain(const IndexTable& table) {
  return {.data = static_cast<const std::int32_t*>(table.data), .stride = table.stride};
}

// For one launch, whose tables begin so many bytes on.
device::PlainTables tables_of(const MaskTables& tables,
                              std::span<const std::int64_t, actions::kMaskTables> bytes) {
  device::PlainTables result{.documents = plain(tables.documents),
                             .length = plain(tables.length),
                             .pages = plain(tables.pages),
                             .page_count = tables.page_count,
                             .page = tables.page,
                             .first_query = tables.first_query,
                             .first_key = tables.first_key,
                             .any = tables.any()};
  std::size_t at = 0;
  for (device::PlainTable* const table : {&result.documents, &result.length, &result.pages}) {
    if (table->data != nullptr) table->data = moved(table->data, bytes[at]);
    ++at;
  }
  return result;
}

// Operands of Attend's loops, but for the mask's tables.
enum Operand : std::uint8_t { kQ, kK, kV, kO, kL, kOperands };
constexpr std::size_t kAllOperands = kOperands + actions::kMaskTables;

// Loops as the kernels for tensor cores walk them: steps of a batch entry and of a head in bytes,
// and how many heads share their keys.
struct Heads {
  Loop<kOperands> batch;
  Loop<kOperands> heads;     // of q, o and lse
  Loop<kOperands> kv_heads;  // of k and v
};

// Whether `outer` goes on where a turn of `group` ends, in what queries have.
bool continues(const Loop<kOperands>& outer, const Loop<kOperands>& group) {
  return std::ranges::all_of(std::array{kQ, kO, kL}, [&](Operand i) {
    return outer.bytes[i] == group.bytes[i] * group.length;
  });
}

// None where the loops are others than a batch, heads, and heads that share keys.
std::optional<Heads> heads_of(Loops<kOperands> loops) {
  Heads result;
  const auto shares = [](const Loop<kOperands>& loop) {
    return loop.bytes[kK] == 0 && loop.bytes[kV] == 0;
  };
  const auto group = std::ranges::find_if(loops, shares);
  if (group != loops.end()) {
    result.heads = *group;
    loops.erase(group);
    if (std::ranges::any_of(loops, shares)) return std::nullopt;
  }
  const auto kv = std::ranges::find_if(
      loops, [&](const Loop<kOperands>& loop) { return continues(loop, result.heads); });
  if (result.heads.length > 1 && kv != loops.end()) {
    result.kv_heads = *kv;
    result.heads.length *= kv->length;
    loops.erase(kv);
  } else if (result.heads.length == 1 && !loops.empty()) {
    result.heads = result.kv_heads = loops.back();
    loops.pop_back();
  }
  if (loops.size() > 1) return std::nullopt;
  if (!loops.empty()) result.batch = loops.front();
  return result;
}

// The mask by positions, as kernels for tensor cores have it; none where they do not.
struct Positions {
  bool causal = false;
  std::int64_t window = 0;
  std::int64_t query = 0;  // position of the first
  std::int64_t key = 0;
};

std::optional<Positions> positions_of(const AttentionProblem& p) {
  Positions positions;
  if (p.visible.prefix >= p.keys) return positions;
  if (p.visible.prefix > 0) return std::nullopt;
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

HeadTensor tensor_of(const void* data, DType dtype, std::int64_t row_stride,
                     const Loop<kOperands>& batch, const Loop<kOperands>& heads, Operand operand) {
  const std::int64_t size = size_in_bytes(dtype);
  return {.address = address_of(data),
          .strides = {.batch = batch.bytes[operand] / size,
                      .row = row_stride,
                      .head = heads.bytes[operand] / size}};
}

// Attention for tensor cores, where its heads, mask and strides are such as they take.
std::optional<AttentionSpec> fast_attention(const AttentionProblem& p,
                                            const Loops<kOperands>& loops, int multiprocessors) {
  const bool half = p.q.dtype == DType::BF16 || p.q.dtype == DType::F16;
  const bool dense = p.q.column_stride == 1 && p.k.column_stride == 1 && p.v.column_stride == 1;
  const std::optional<Heads> heads = heads_of(loops);
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
  spec.scale = p.scale;
  AttentionPanelSpec panel;
  panel.rows = p.queries;
  panel.position = positions->query;
  panel.queries = tensor_of(p.q.data, p.q.dtype, p.q.row_stride, batch, all, kQ);
  panel.output = tensor_of(p.o, DType::F32, p.o_row_stride, batch, all, kO);
  panel.lse = tensor_of(p.lse, DType::F32, p.lse_stride, batch, all, kL);
  if (p.carry) panel.carried_output = panel.output;
  AttentionChunkSpec chunk;
  chunk.rows = p.keys;
  chunk.position = positions->key;
  chunk.keys = tensor_of(p.k.data, p.k.dtype, p.k.row_stride, batch, kv, kK);
  chunk.values = tensor_of(p.v.data, p.v.dtype, p.v.row_stride, batch, kv, kV);
  spec.panels = {panel};
  spec.chunks = {chunk};
  if (!check(spec, multiprocessors).ok()) return std::nullopt;
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

device::PlainValues plain(const RowValues& values) {
  return {.data = values.data,
          .number = values.dtype == DType::F64 ? device::Number::F64 : device::Number::F32,
          .stride = values.stride};
}

device::PlainSums plain(const SumMatrix& sums) {
  return {.data = sums.data, .row_stride = sums.row_stride, .carry = sums.carry};
}

device::PlainGradientArgs plain_gradient(const AttentionGradientProblem& p, device::Number number) {
  device::PlainGradientArgs args{};
  args.q = plain(p.q, number);
  args.k = plain(p.k, number);
  args.v = plain(p.v, number);
  args.d_o = plain(p.d_o, number);
  args.lse = plain(p.lse);
  args.delta = plain(p.delta);
  args.dq = plain(p.dq);
  args.dk = plain(p.dk);
  args.dv = plain(p.dv);
  args.queries = p.queries;
  args.keys = p.keys;
  args.head_dim = p.head_dim;
  args.value_dim = p.value_dim;
  args.scale = p.scale;
  args.mask = plain(p.visible);
  return args;
}

void move_operands(device::PlainGradientArgs& args, const AttentionGradientProblem& p,
                   const std::array<std::int64_t, 9 + actions::kMaskTables>& offsets) {
  args.q.data = moved(p.q.data, offsets[0]);
  args.k.data = moved(p.k.data, offsets[1]);
  args.v.data = moved(p.v.data, offsets[2]);
  args.d_o.data = moved(p.d_o.data, offsets[3]);
  args.lse.data = moved(p.lse.data, offsets[4]);
  args.delta.data = moved(p.delta.data, offsets[5]);
  args.dq.data = moved(p.dq.data, offsets[6]);
  args.dk.data = moved(p.dk.data, offsets[7]);
  args.dv.data = moved(p.dv.data, offsets[8]);
  args.tables = tables_of(p.tables, std::span(offsets).last<actions::kMaskTables>());
}

// Blocks that make a result of so many rows and columns, a turn.
std::int64_t blocks_of(std::int64_t rows, std::int64_t columns) {
  return divide_up(rows, device::kPlainRows) * divide_up(columns, device::kPlainSlice);
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
    if (const auto spec = fast_attention(p, plain_loops, choice.multiprocessors)) {
      return std::vector<LaunchSpec>{*spec};
    }
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

Checked<std::vector<LaunchSpec>> plan(const LaunchChoice& choice,
                                      const actions::Differentiate& heads) {
  std::vector<LaunchSpec> launches;
  const AttentionGradientProblem& p = heads.first;
  const auto number = number_of(p.q.dtype);
  if (!number || p.k.dtype != p.q.dtype || p.v.dtype != p.q.dtype || p.d_o.dtype != p.q.dtype) {
    return no_kernel(choice, "gradients of `" + std::string(print(p.q.dtype)) + "`");
  }
  const Loops<9 + actions::kMaskTables> loops = joined(heads.loops);
  device::PlainGradientArgs args = plain_gradient(p, *number);
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops, [&](const auto& offsets, const auto& inner) {
        move_operands(args, p, offsets);
        args.nest = nest_of(inner);
        const auto kept = static_cast<std::size_t>(args.nest.kept);
        args.turns = turns_of(inner.first(kept));
        args.sums = turns_of(inner.subspan(kept));
        args.dq_blocks = blocks_of(p.queries, p.head_dim) * args.turns * args.sums;
        args.dk_blocks = blocks_of(p.keys, p.head_dim) * args.turns;
        args.dv_blocks = blocks_of(p.keys, p.value_dim) * args.turns;
        const std::int64_t blocks = args.dq_blocks + args.dk_blocks + args.dv_blocks;
        if (blocks <= 0) return;
        launches.emplace_back(PlainLaunch{.kernel = PlainKernel::Gradient,
                                          .wide = p.q.dtype == DType::F64,
                                          .blocks = as_grid(blocks),
                                          .args = args});
      }));
  return launches;
}

}  // namespace harpe::cuda
