#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ir/interpret_leaves.h"
#include "ir/interpret_rows.h"

namespace harpe {

// Keys [begin, end).
struct KeyRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The roles of axes in a leaf with queries and keys, and the pairs that masks by position show.
// MaskData hides further pairs.
struct AttentionAxes {
  AxisList batch;  // of o, except query and value: batch entries and heads
  AxisList query;
  AxisList key;
  AxisList head_dim;
  AxisList value_dim;
  double scale = 1;
  bool masked = false;
  std::int64_t diagonal = 0;  // query q's own key is q + diagonal
  std::int64_t window = 0;    // number of keys seen, up to the own key; 0: all
  std::int64_t prefix = 0;    // keys that all queries see

  [[nodiscard]] bool sees(std::int64_t query_position, std::int64_t key_position) const {
    const std::int64_t own = query_position + diagonal;
    const bool in_window = window == 0 || key_position > own - window;
    return !masked || key_position < prefix || (key_position <= own && in_window);
  }
  // The part of the first `keys` keys that a query sees by position: at most two disjoint ascending
  // runs.
  [[nodiscard]] std::vector<KeyRun> seen_by(std::int64_t query_position, std::int64_t keys) const;
};

// Roles by position: q[B, Q, (H, G), D], k[B, K, H, D], v[B, K, H, Dv], o[B, Q, (H, G), Dv].
struct AttentionTensors {
  const NamedTensor& q;
  const NamedTensor& k;
  const NamedTensor& v;
  const NamedTensor& o;
};
[[nodiscard]] Checked<AttentionAxes> attention_axes(const LeafCall& call,
                                                    const AttentionTensors& tensors);

// P205 unless the axes of `tensor` are exactly those in `parts`, with the same extents.
[[nodiscard]] Checked<Ok> check_axes(const LeafCall& call, const NamedTensor& tensor,
                                     const std::vector<const AxisList*>& parts);

// Offsets of the points of one tensor's matrix, by batch entry, row and column.
struct Places {
  std::vector<std::int64_t> batch;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
  Places(const NamedTensor& tensor, const AxisList& batch_axes, const AxisList& row_axes,
         const AxisList& column_axes)
      : batch(offsets_in(tensor, batch_axes)),
        rows(offsets_in(tensor, row_axes)),
        columns(offsets_in(tensor, column_axes)) {}

  [[nodiscard]] std::int64_t at(std::int64_t entry, std::int64_t row) const {
    return batch[static_cast<std::size_t>(entry)] + rows[static_cast<std::size_t>(row)];
  }
};

// The logarithm of an empty sum of weights.
constexpr double kNoWeight = -std::numeric_limits<double>::infinity();

}  // namespace harpe
