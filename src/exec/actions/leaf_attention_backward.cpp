#include "exec/actions/leaf.h"
#include "exec/actions/leaf_attention_site.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

// Participants of the leaf: q[B, Q, (H, G), D], k[B, K, H, D], v[B, K, H, Dv], do like q with Dv,
// lse and delta [B, (H, G), Q], then dq, dk, dv like q, k, v.
constexpr std::size_t kDo = 3;
constexpr std::size_t kLse = 4;
constexpr std::size_t kDelta = 5;
constexpr std::size_t kDq = 6;
constexpr std::size_t kDk = 7;
constexpr std::size_t kDv = 8;
constexpr std::size_t kBackwardParticipants = 9;

RowValues rows_of(const View& view, const AttentionSite& axes) {
  return {.data = view.data, .dtype = view.dtype, .stride = view.strides[axes.query]};
}

SumMatrix sums_of(const LeafCall& call, std::size_t participant, std::size_t rows,
                  std::size_t columns) {
  const View& view = call.cell.views[participant];
  HP_CHECK(view.strides[columns] == 1, "features of a gradient lie one after the other");
  return {.data = view.data,
          .row_stride = view.strides[rows],
          .carry = call.accumulate[participant - kDq]};
}

}  // namespace

Checked<Action> call_attention_backward(const LeafSite& site, const LeafCall& call) {
  const Cell& cell = call.cell;
  HP_REQUIRE_OK(check_types(site, cell, kLse));
  const std::size_t matrices[] = {kQ, kK, kV, kDo, kDq, kDk, kDv};
  HP_TRY(const AttentionSite axes, attention_site(site, cell, matrices));
  Differentiate heads;
  heads.first = {.queries = cell.span[axes.query].size(),
                 .keys = cell.span[axes.key].size(),
                 .head_dim = cell.span[axes.head_dim].size(),
                 .value_dim = cell.span[axes.value_dim].size(),
                 .q = matrix_of(site, cell, kQ),
                 .k = matrix_of(site, cell, kK),
                 .v = matrix_of(site, cell, kV),
                 .d_o = matrix_of(site, cell, kDo),
                 .lse = rows_of(cell.views[kLse], axes),
                 .delta = rows_of(cell.views[kDelta], axes),
                 .dq = sums_of(call, kDq, axes.query, axes.head_dim),
                 .dk = sums_of(call, kDk, axes.key, axes.head_dim),
                 .dv = sums_of(call, kDv, axes.key, axes.value_dim),
                 .scale = axes.scale,
                 .visible = axes.visible,
                 .tables = axes.tables,
                 .products = site.products};
  heads.loops = loops_over_heads<kBackwardParticipants>(site, cell, axes, kDk);
  return Action{std::move(heads)};
}

}  // namespace harpe::actions
