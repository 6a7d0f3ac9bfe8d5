#include <algorithm>
#include <cmath>

#include "exec/cpu/leaf.h"
#include "support/check.h"

namespace harpe::cpu {
namespace {

// Participants of the leaf: q[B, Q, (H, G), D], k[B, K, H, D], v[B, K, H, Dv], o like q with Dv,
// l[B, (H, G), Q].
constexpr std::size_t kQ = 0;
constexpr std::size_t kK = 1;
constexpr std::size_t kV = 2;
constexpr std::size_t kO = 3;
constexpr std::size_t kL = 4;
constexpr std::size_t kParticipants = 5;

struct Axes {
  std::size_t query;
  std::size_t key;
  std::size_t head_dim;
  std::size_t value_dim;
};

Checked<Axes> axes_of(const LeafSite& site) {
  for (const std::size_t participant : {kQ, kK, kV, kO}) {
    const std::vector<std::vector<std::size_t>>& dims = site.dims[participant];
    if (dims.size() == 4 && dims[1].size() == 1 && dims[3].size() == 1) continue;
    return make_diag(DiagCode::X007, {{"leaf", site.stmt.leaf},
                                      {"nest", site.nest.name},
                                      {"buffer", site.buffer_of(participant)}});
  }
  return Axes{.query = site.dims[kQ][1][0],
              .key = site.dims[kK][1][0],
              .head_dim = site.dims[kQ][3][0],
              .value_dim = site.dims[kO][3][0]};
}

double scale_of(const LeafSite& site, std::int64_t head_dim) {
  for (const auto& [name, value] : site.stmt.attrs) {
    if (name != "scale") continue;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  }
  return 1.0 / std::sqrt(static_cast<double>(head_dim));
}

Checked<Ok> check_whole(const LeafSite& site, const Cell& cell, std::size_t axis) {
  const std::int64_t found = cell.span[axis].size();
  if (found == site.lengths[axis]) return Ok{};
  return make_diag(DiagCode::X003, {{"leaf", site.stmt.leaf},
                                    {"nest", site.nest.name},
                                    {"axis", site.names[axis]},
                                    {"found", found},
                                    {"whole", site.lengths[axis]}});
}

// What the cell's queries see of its keys.
Checked<Visibility> visible_in(const LeafSite& site, const Cell& cell, const Axes& axes) {
  if (!site.mask) return Visibility();
  const bool fits = site.mask->query_axis == static_cast<int>(axes.query) &&
                    site.mask->key_axis == static_cast<int>(axes.key);
  if (!fits) {
    return make_diag(DiagCode::X006, {{"leaf", site.stmt.leaf}, {"nest", site.nest.name}});
  }
  return seen_from(site.mask->visible, cell.span[axes.query].begin, cell.span[axes.key].begin);
}

// The second dimension of a participant runs along its rows, the fourth along its columns.
MatrixView matrix(const LeafSite& site, const Cell& cell, std::size_t participant) {
  const View& view = cell.views[participant];
  const std::vector<std::vector<std::size_t>>& dims = site.dims[participant];
  return {.data = view.data,
          .dtype = view.dtype,
          .row_stride = view.strides[dims[1][0]],
          .column_stride = view.strides[dims[3][0]]};
}

// Every axis of q that is in no matrix: batch entries and heads.
std::vector<Loop<kParticipants>> loops_of(const LeafSite& site, const Cell& cell,
                                          const Axes& axes) {
  std::vector<Loop<kParticipants>> loops;
  for (const std::size_t axis : site.axes_of(kQ)) {
    const bool inside = axis == axes.query || axis == axes.head_dim;
    if (inside || cell.span[axis].size() == 1) continue;
    Loop<kParticipants> loop{.length = cell.span[axis].size(), .bytes = {}, .reduces = false};
    for (std::size_t i = 0; i < kParticipants; ++i) {
      loop.bytes[i] = cell.views[i].strides[axis] * size_in_bytes(cell.views[i].dtype);
    }
    loops.push_back(loop);
  }
  return loops;
}

}  // namespace

Checked<Action> call_attention(const LeafSite& site, const LeafCall& call) {
  const Cell& cell = call.cell;
  HP_REQUIRE_OK(check_types(site, cell));
  HP_TRY(const Axes axes, axes_of(site));
  HP_REQUIRE_OK(check_whole(site, cell, axes.head_dim));
  HP_REQUIRE_OK(check_whole(site, cell, axes.value_dim));
  HP_TRY(const Visibility visible, visible_in(site, cell, axes));
  const View& o = cell.views[kO];
  HP_CHECK(o.strides[axes.value_dim] == 1, "values of an output row lie one after the other");
  Attend heads;
  heads.first = {.queries = cell.span[axes.query].size(),
                 .keys = cell.span[axes.key].size(),
                 .head_dim = cell.span[axes.head_dim].size(),
                 .value_dim = cell.span[axes.value_dim].size(),
                 .q = matrix(site, cell, kQ),
                 .k = matrix(site, cell, kK),
                 .v = matrix(site, cell, kV),
                 .o = o.data,
                 .o_row_stride = o.strides[axes.query],
                 .lse = cell.views[kL].data,
                 .lse_stride = cell.views[kL].strides[axes.query],
                 .scale = scale_of(site, site.lengths[axes.head_dim]),
                 .carry = call.accumulate,
                 .visible = visible};
  heads.loops = loops_of(site, cell, axes);
  return Action{std::move(heads)};
}

}  // namespace harpe::cpu
