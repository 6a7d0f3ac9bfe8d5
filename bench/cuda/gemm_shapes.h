#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "bench/cuda/gemm_case.h"
#include "bench/cuda/options.h"

namespace harpe::bench {

// 8192 cubed, and the work of one of 8 GPUs in the GEMMs of a large model: after an all-gather (N
// is cut) or before a reduce-scatter (K is cut). bf16.
[[nodiscard]] std::vector<GemmCase> gemm_shapes();

// A bf16 GEMM of the size MxNxK, such as 512x8192x1024, or, with B's rows along k, MxNxKnk; none if
// the text is no such size.
[[nodiscard]] std::optional<GemmCase> read_size(std::string_view text);

// Those of --size, or else the usual ones.
[[nodiscard]] std::vector<GemmCase> shapes_of(const Options& options, std::vector<GemmCase> usual);

// A GEMM, a bias and a gelu: the work of one of 2, 4 or 8 GPUs in the layers of large models.
[[nodiscard]] std::vector<GemmCase> mapped_shapes();

// The work of one of 2, 4 or 8 GPUs in the layers of large models for few rows, and odd shapes: B
// with rows along n, some also along k. bf16.
[[nodiscard]] std::vector<GemmCase> few_rows_shapes();

}  // namespace harpe::bench
