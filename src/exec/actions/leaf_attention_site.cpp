#include "exec/actions/leaf_attention_site.h"

#include <algorithm>
#include <cmath>

#include "ir/mask_contract.h"

namespace harpe::actions {
namespace {

using Dims = std::vector<std::vector<std::size_t>>;

bool is_of_keys(std::size_t participant) { return participant == kK || participant == kV; }

std::size_t row_axis(const Dims& dims, std::size_t participant) {
  if (dims.size() == 4) return dims[1].front();
  return is_of_keys(participant) ? dims[0].front() : dims[1].back();
}

bool has_pages(const LeafSite& site) {
  return std::ranges::any_of(site.stmt.masks, [](const Mask& mask) {
    return read_mask(mask).contract->kind == MaskKind::Paged;
  });
}

// Three dimensions are valid for queries with one new position each, [batch, (KV heads, group),
// features], where the heads of a group, which share keys, are the rows; and for keys, [positions,
// KV heads, features], in pages that all batch entries share.
Checked<Ok> check_dims(const LeafSite& site, std::span<const std::size_t> matrices) {
  for (const std::size_t participant : matrices) {
    const Dims& dims = site.dims[participant];
    const bool one = dims.back().size() == 1;
    const bool grouped = dims.size() == 3 && dims[1].size() == 2;
    const bool shared = dims.size() == 3 && dims[0].size() == 1 && has_pages(site);
    if (one && (is_of_keys(participant) ? shared : grouped)) continue;
    if (one && dims.size() == 4 && dims[1].size() == 1) continue;
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

Diag not_between(const LeafSite& site) {
  return make_diag(DiagCode::X006, {{"leaf", site.stmt.leaf}, {"nest", site.nest.name}});
}

// One table of masks, whose batch entries are those of q.
Checked<IndexTable> table_of(const LeafSite& site, const Cell& cell, const AttentionSite& axes,
                             std::size_t participant, bool has_entries) {
  Dims dims = site.dims[participant];
  IndexTable table{.data = cell.views[participant].data, .stride = 1};
  if (has_entries) {
    const std::size_t entries = dims.back()[0];
    HP_REQUIRE_OK(check_whole(site, cell, entries));
    table.stride = cell.views[participant].strides[entries];
    dims.pop_back();
  }
  const std::vector<std::size_t> looped = site.axes_of(kQ);
  for (const std::vector<std::size_t>& dim : dims) {
    for (const std::size_t axis : dim) {
      const bool inside = axis == axes.query || axis == axes.head_dim;
      if (inside || std::ranges::find(looped, axis) == looped.end()) return not_between(site);
    }
  }
  return table;
}

Checked<Ok> read_tables(const LeafSite& site, const Cell& cell, AttentionSite& axes) {
  axes.tables.first_query = cell.span[axes.query].begin;
  axes.tables.first_key = cell.span[axes.key].begin;
  for (const Mask& mask : site.stmt.masks) {
    const MaskCall call = read_mask(mask);
    if (!call.contract->data) continue;
    const std::size_t participant = site.mask_participant(call.data);
    HP_TRY(const IndexTable table, table_of(site, cell, axes, participant, call.contract->table));
    if (call.contract->kind == MaskKind::Doc) {
      axes.tables.documents = table;
      axes.table_parts[0] = participant;
    } else if (call.contract->kind == MaskKind::Length) {
      axes.tables.length = table;
      axes.table_parts[1] = participant;
    } else {
      axes.tables.pages = table;
      axes.tables.page = call.number;
      axes.tables.page_count = site.lengths[site.dims[participant].back()[0]];
      axes.table_parts[2] = participant;
    }
  }
  return Ok{};
}

// The visibility of the cell's keys to its queries.
Checked<Visibility> visible_in(const LeafSite& site, const Cell& cell, const AttentionSite& axes) {
  if (!site.mask) return Visibility();
  const bool fits = site.mask->query_axis == static_cast<int>(axes.query) &&
                    site.mask->key_axis == static_cast<int>(axes.key);
  if (!fits) return not_between(site);
  return seen_from(site.mask->visible, cell.span[axes.query].begin, cell.span[axes.key].begin);
}

}  // namespace

Checked<AttentionSite> attention_site(const LeafSite& site, const Cell& cell,
                                      std::span<const std::size_t> matrices) {
  HP_REQUIRE_OK(check_dims(site, matrices));
  AttentionSite axes{.query = row_axis(site.dims[kQ], kQ),
                     .key = row_axis(site.dims[kK], kK),
                     .head_dim = site.dims[kQ].back()[0],
                     .value_dim = site.dims[kV].back()[0]};
  HP_REQUIRE_OK(check_whole(site, cell, axes.head_dim));
  HP_REQUIRE_OK(check_whole(site, cell, axes.value_dim));
  HP_TRY(axes.visible, visible_in(site, cell, axes));
  HP_REQUIRE_OK(read_tables(site, cell, axes));
  axes.scale = scale_of(site, site.lengths[axes.head_dim]);
  return axes;
}

MatrixView matrix_of(const LeafSite& site, const Cell& cell, std::size_t participant) {
  const View& view = cell.views[participant];
  const Dims& dims = site.dims[participant];
  return {.data = view.data,
          .dtype = view.dtype,
          .row_stride = view.strides[row_axis(dims, participant)],
          .column_stride = view.strides[dims.back()[0]]};
}

}  // namespace harpe::actions
