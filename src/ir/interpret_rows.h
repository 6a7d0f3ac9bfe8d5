#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/interpret.h"
#include "ir/interpret_leaves.h"

namespace harpe {

// What the leaves' loops have in common: index spaces and the choice of rows.

using AxisList = std::vector<NamedTensor::Axis>;  // names and sizes; strides are of no account

// Where the points of an index space, row-major over `axes`, lie in `tensor`: axes it lacks do not
// move.
[[nodiscard]] std::vector<std::int64_t> offsets_in(const NamedTensor& tensor, const AxisList& axes);
[[nodiscard]] std::int64_t points_in(const AxisList& axes);
[[nodiscard]] std::optional<std::size_t> place_of(const AxisList& axes, const std::string& name);
// Of point number `point` the position along axis number `axis`.
[[nodiscard]] std::int64_t coordinate(const AxisList& axes, std::size_t axis, std::int64_t point);

// Rows of one batch entry, ascending: a unit of work.
struct RowBlock {
  std::int64_t batch = 0;
  std::vector<std::int64_t> rows;
};

// All rows of all batch entries, or a sample of them, in blocks of up to `block`. A sample spreads
// over at most 16 batch entries, the first and the last among them, and holds for every axis of a
// row and every border position along it two rows there.
[[nodiscard]] std::vector<RowBlock> choose_rows(std::int64_t batches, const AxisList& row_axes,
                                                const std::optional<RowSample>& sample,
                                                std::int64_t block);
[[nodiscard]] bool is_sampled(std::int64_t batches, const AxisList& row_axes,
                              const std::optional<RowSample>& sample);

// Sorted and without duplicates.
[[nodiscard]] std::vector<std::int64_t> ascending(std::vector<std::int64_t> values);

}  // namespace harpe
