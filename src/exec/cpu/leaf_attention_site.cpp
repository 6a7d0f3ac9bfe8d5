#include "exec/cpu/leaf_attention_site.h"

#include <cmath>

namespace harpe::cpu {
namespace {

constexpr std::size_t kQ = 0;
constexpr std::size_t kK = 1;
constexpr std::size_t kV = 2;

Checked<Ok> check_dims(const LeafSite& site, std::span<const std::size_t> matrices) {
  for (const std::size_t participant : matrices) {
    const std::vector<std::vector<std::size_t>>& dims = site.dims[participant];
    if (dims.size() == 4 && dims[1].size() == 1 && dims[3].size() == 1) continue;
    return make_diag(DiagCode::X007, {{"leaf", site.stmt.leaf},
                                      {"nest", site.nest.name},
                                      {"buffer", site.buffer_of(participant)}});
  }
  return Ok{};
}

double scale_of(const LeafSite& site, std::int64_t head_dim) {
  for (const auto& [name, value] : site.stmt.attrs) {
    if (name != "scale") continue;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  }
  return 1.0 / std::sqrt(static_cast<double>(head_dim));
}

// What the cell's queries see of its keys.
Checked<Visibility> visible_in(const LeafSite& site, const Cell& cell, const AttentionSite& axes) {
  if (!site.mask) return Visibility();
  const bool fits = site.mask->query_axis == static_cast<int>(axes.query) &&
                    site.mask->key_axis == static_cast<int>(axes.key);
  if (!fits) {
    return make_diag(DiagCode::X006, {{"leaf", site.stmt.leaf}, {"nest", site.nest.name}});
  }
  return seen_from(site.mask->visible, cell.span[axes.query].begin, cell.span[axes.key].begin);
}

}  // namespace

Checked<AttentionSite> attention_site(const LeafSite& site, const Cell& cell,
                                      std::span<const std::size_t> matrices) {
  HP_REQUIRE_OK(check_dims(site, matrices));
  AttentionSite axes{.query = site.dims[kQ][1][0],
                     .key = site.dims[kK][1][0],
                     .head_dim = site.dims[kQ][3][0],
                     .value_dim = site.dims[kV][3][0]};
  HP_REQUIRE_OK(check_whole(site, cell, axes.head_dim));
  HP_REQUIRE_OK(check_whole(site, cell, axes.value_dim));
  HP_TRY(axes.visible, visible_in(site, cell, axes));
  axes.scale = scale_of(site, site.lengths[axes.head_dim]);
  return axes;
}

MatrixView matrix_of(const LeafSite& site, const Cell& cell, std::size_t participant) {
  const View& view = cell.views[participant];
  const std::vector<std::vector<std::size_t>>& dims = site.dims[participant];
  return {.data = view.data,
          .dtype = view.dtype,
          .row_stride = view.strides[dims[1][0]],
          .column_stride = view.strides[dims[3][0]]};
}

}  // namespace harpe::cpu
