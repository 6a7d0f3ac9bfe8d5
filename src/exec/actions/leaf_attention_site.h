#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/actions/leaf.h"

namespace harpe::actions {

// The first operands of every leaf with scores.
constexpr std::size_t kQ = 0;
constexpr std::size_t kK = 1;
constexpr std::size_t kV = 2;

constexpr std::size_t kNoTable = static_cast<std::size_t>(-1);

// A cell of a leaf with queries and keys: the roles of the axes of the space, and what is visible.
// Tensors are [batch, positions, heads, features]; q is the first operand, k the second, v the
// third. If q has no positions, as in [batch, (KV heads, group), features], the group's heads take
// the place of queries. If k and v are pages that all batch entries share, they are [positions,
// heads, features].
struct AttentionSite {
  std::size_t query = 0;
  std::size_t key = 0;
  std::size_t head_dim = 0;
  std::size_t value_dim = 0;
  double scale = 1;
  Visibility visible = {};  // of the cell's keys to its queries
  MaskTables tables = {};   // of the first batch entry
  // Participants that hold the tables, in the order documents, length, pages.
  std::array<std::size_t, kMaskTables> table_parts = {kNoTable, kNoTable, kNoTable};
};

// `matrices`: the participants with four dimensions, including q, k and v.
// Errors: X003 features cut, X006 masks, X007 dimensions.
[[nodiscard]] Checked<AttentionSite> attention_site(const LeafSite& site, const Cell& cell,
                                                    std::span<const std::size_t> matrices);

// One head of a participant: positions or a group's heads are the rows, features the columns.
[[nodiscard]] MatrixView matrix_of(const LeafSite& site, const Cell& cell, std::size_t participant);

// Loops over every axis of q that is in no matrix: batch entries and heads. Iterations of axes that
// participant `result` lacks are summed there. The tables of masks advance with the loops.
template <std::size_t kParticipants>
[[nodiscard]] std::vector<Loop<kParticipants + kMaskTables>> loops_over_heads(
    const LeafSite& site, const Cell& cell, const AttentionSite& axes, std::size_t result) {
  std::vector<Loop<kParticipants + kMaskTables>> loops;
  const std::vector<std::size_t> kept = site.axes_of(result);
  for (const std::size_t axis : site.axes_of(0)) {
    const bool inside = axis == axes.query || axis == axes.head_dim;
    if (inside || cell.span[axis].size() == 1) continue;
    Loop<kParticipants + kMaskTables> loop{.length = cell.span[axis].size(),
                                           .bytes = {},
                                           .reduces = std::ranges::find(kept, axis) == kept.end()};
    const auto step = [&](std::size_t participant) {
      const View& view = cell.views[participant];
      return view.strides[axis] * size_in_bytes(view.dtype);
    };
    for (std::size_t i = 0; i < kParticipants; ++i) loop.bytes[i] = step(i);
    for (std::size_t i = 0; i < kMaskTables; ++i) {
      if (axes.table_parts[i] != kNoTable) {
        loop.bytes[kParticipants + i] = step(axes.table_parts[i]);
      }
    }
    loops.push_back(loop);
  }
  return loops;
}

}  // namespace harpe::actions
