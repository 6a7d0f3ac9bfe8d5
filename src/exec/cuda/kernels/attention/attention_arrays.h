#pragma once

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/strided_array.h"

namespace harpe::cuda {

// The operands and results of attention as arrays of batch entries, rows, heads, columns.
[[nodiscard]] StridedArray array_queries(const AttentionSpec& spec,
                                         const AttentionPanelSpec& panel);
[[nodiscard]] StridedArray array_carried(const AttentionSpec& spec,
                                         const AttentionPanelSpec& panel);
[[nodiscard]] StridedArray array_output(const AttentionSpec& spec, const AttentionPanelSpec& panel);
[[nodiscard]] StridedArray array_lse(const AttentionSpec& spec, const AttentionPanelSpec& panel);
[[nodiscard]] StridedArray array_carried_lse(const AttentionSpec& spec,
                                             const AttentionPanelSpec& panel);
[[nodiscard]] StridedArray array_keys(const AttentionSpec& spec, const AttentionChunkSpec& chunk);
[[nodiscard]] StridedArray array_values(const AttentionSpec& spec, const AttentionChunkSpec& chunk);
[[nodiscard]] HeadTensor tensor_at(const StridedArray& array);
// The tables of the spec: lengths first, then pages.
[[nodiscard]] std::vector<StridedArray> arrays_tables(const AttentionSpec& spec);

}  // namespace harpe::cuda
