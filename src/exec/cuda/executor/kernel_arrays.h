#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/kernels/attention/attention.h"
#include "exec/cuda/kernels/gemm/gemm.h"

namespace harpe::cuda {

// An array as kernels have it: its first element, and how many steps of how many elements.
struct StridedArray {
  struct Extent {
    std::int64_t count = 1;
    std::int64_t stride = 0;
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  DeviceAddress address = 0;
  std::int64_t element_bytes = 2;
  std::vector<Extent> extents;
};

// The operands and results of a GEMM: rows of A, B and C, then their columns. B is what
// the K chunk meets; with KMajor its rows run along N.
[[nodiscard]] StridedArray array_a(const GemmSpec& spec, const GemmPanelSpec& panel,
                                   const GemmPieceSpec& piece);
[[nodiscard]] StridedArray array_b(const GemmSpec& spec, const GemmPanelSpec& panel,
                                   const GemmPieceSpec& piece);
[[nodiscard]] StridedArray array_c(const GemmSpec& spec, const GemmPanelSpec& panel);

// The same of attention: batch entries, rows, heads, columns.
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

}  // namespace harpe::cuda
