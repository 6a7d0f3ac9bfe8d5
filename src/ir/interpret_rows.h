#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/interpret.h"
#include "ir/interpret_leaves.h"

namespace harpe {

// Index spaces and the choice of rows, shared by the leaves.

using AxisList = std::vector<NamedTensor::Axis>;  // names and sizes; strides are ignored

// Offsets in `tensor` of the points of an index space, row-major over `axes`. Axes that the tensor
// lacks add nothing.
[[nodiscard]] std::vector<std::int64_t> offsets_in(const NamedTensor& tensor, const AxisList& axes);
[[nodiscard]] std::int64_t points_in(const AxisList& axes);
[[nodiscard]] std::optional<std::size_t> place_of(const AxisList& axes, const std::string& name);
// The position along axis number `axis` of point number `point`.
[[nodiscard]] std::int64_t coordinate(const AxisList& axes, std::size_t axis, std::int64_t point);

// Rows of one batch entry, ascending: a unit of work.
struct RowBlock {
  std::int64_t batch = 0;
  std::vector<std::int64_t> rows;
};

// All rows of all batch entries, or a sample of them, in blocks of up to `block` rows. A sample
// covers at most 16 batch entries, including the first and the last. For every row axis and every
// border position along it, the sample contains two rows at that position.
[[nodiscard]] std::vector<RowBlock> choose_rows(std::int64_t batches, const AxisList& row_axes,
                                                const std::optional<RowSample>& sample,
                                                std::int64_t block);
[[nodiscard]] bool is_sampled(std::int64_t batches, const AxisList& row_axes,
                              const std::optional<RowSample>& sample);

// Sorted and without duplicates.
[[nodiscard]] std::vector<std::int64_t> ascending(std::vector<std::int64_t> values);

}  // namespace harpe
