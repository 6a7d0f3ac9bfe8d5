#include "exec/actions/leaf.h"
#include "exec/actions/leaf_attention_site.h"
#include "support/check.h"

namespace harpe::actions {
namespace {

// Participants of the leaf: q[B, Q, (H, G), D], k[B, K, H, D], v[B, K, H, Dv], o like q with Dv,
// l[B, (H, G), Q].
constexpr std::size_t kO = 3;
constexpr std::size_t kL = 4;
constexpr std::size_t kForwardParticipants = 5;

}  // namespace

Checked<Action> call_attention(const LeafSite& site, const LeafCall& call) {
  const Cell& cell = call.cell;
  HP_REQUIRE_OK(check_types(site, cell));
  const std::size_t matrices[] = {kQ, kK, kV, kO};
  HP_TRY(const AttentionSite axes, attention_site(site, cell, matrices));
  const View& o = cell.views[kO];
  HP_CHECK(o.strides[axes.value_dim] == 1, "values of an output row lie one after the other");
  Attend heads;
  heads.first = {.queries = cell.span[axes.query].size(),
                 .keys = cell.span[axes.key].size(),
                 .head_dim = cell.span[axes.head_dim].size(),
                 .value_dim = cell.span[axes.value_dim].size(),
                 .q = matrix_of(site, cell, kQ),
                 .k = matrix_of(site, cell, kK),
                 .v = matrix_of(site, cell, kV),
                 .o = o.data,
                 .o_row_stride = o.strides[axes.query],
                 .lse = cell.views[kL].data,
                 .lse_stride = cell.views[kL].strides[axes.query],
                 .scale = axes.scale,
                 .carry = call.accumulate[0],
                 .visible = axes.visible,
                 .tables = axes.tables,
                 .products = site.products};
  heads.loops = loops_over_heads<kForwardParticipants>(site, cell, axes, kO);
  return Action{std::move(heads)};
}

}  // namespace harpe::actions
