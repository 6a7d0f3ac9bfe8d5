#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "exec/cpu/leaf.h"

namespace harpe::cpu {

// A cell of a leaf between queries and keys: which axes of the space play which part, and what is
// visible. Tensors are [batch, positions, heads, features]: q is the first operand, k the second, v
// the third.
struct AttentionSite {
  std::size_t query = 0;
  std::size_t key = 0;
  std::size_t head_dim = 0;
  std::size_t value_dim = 0;
  double scale = 1;
  Visibility visible = {};  // of the cell's keys to its queries
};

// `matrices` are the participants that have four dimensions, q, k and v among them.
// Errors: X003 features cut, X006 masks, X007 dimensions.
[[nodiscard]] Checked<AttentionSite> attention_site(const LeafSite& site, const Cell& cell,
                                                    std::span<const std::size_t> matrices);

// One head of a participant: its second dimension runs along the rows, the fourth along the
// columns.
[[nodiscard]] MatrixView matrix_of(const LeafSite& site, const Cell& cell, std::size_t participant);

}  // namespace harpe::cpu
