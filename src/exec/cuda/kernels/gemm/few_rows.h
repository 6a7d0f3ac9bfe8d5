#pragma once

#include "exec/cuda/kernels/gemm/gemm.h"

namespace harpe::cuda {

// What the variants for few rows ask of a spec (device/few_rows.cuh).

// Rows of the one tile: those of all panels, each rounded up to 8.
[[nodiscard]] std::int64_t rows_in_tile(const GemmSpec& spec);

// Of these the rows that a block has, of pairs the first one; the other has no more.
[[nodiscard]] std::int64_t rows_each(const GemmSpec& spec, const device::GemmConfig& config);

// Blocks of a stream, which are a cluster.
[[nodiscard]] int cluster_of(const GemmChoice& choice);

// Whether a variant with such a tile does the spec, whatever its types: no tile of fewer rows does,
// pieces are in the order of K, and C is not added to.
[[nodiscard]] bool suits_few_rows(const GemmSpec& spec, const device::GemmConfig& config);

// Into how many streams of so many blocks, or pairs, B may be cut at most.
[[nodiscard]] int most_streams(const GemmSpec& spec, const device::GemmConfig& config,
                               int stream_blocks);

// Whether streams may have so many blocks, or pairs: an inbox holds what the others send, and
// clusters of these divide the blocks that copy.
[[nodiscard]] bool can_share_streams(const GemmSpec& spec, const device::GemmConfig& config,
                                     int stream_blocks);

// How many clusters of so many run at once on so many multiprocessors. A cluster lies within one of
// the GPU's groups of 14 to 18; of four and more some of a group are left over.
[[nodiscard]] int clusters_of(int blocks, int stream_blocks);

// Bytes a clock of an H200 where each block reads weights that no other reads: what memory gives so
// many blocks together, and what the second-level cache gives all of them, of both operands.
[[nodiscard]] double streamed_from_memory(double blocks);
inline constexpr double kStreamedThroughCache = 6280.0;

// How many clocks apart so many blocks load what fills their rings with weights; 0: at once. While
// rows are on their way it is no faster than memory gives it: stores and fences of who brings them
// wait behind all loads that do.
[[nodiscard]] int clocks_between_loads(const GemmSpec& spec, const device::GemmConfig& config,
                                       int blocks);

// Streams for so many blocks, and what they take in clocks; a pure function.
struct StreamEstimate {
  int streams = 1;
  int stream_blocks = 1;
  double clocks = 0;
};
[[nodiscard]] StreamEstimate estimate_streams(const GemmSpec& spec,
                                              const device::GemmConfig& config, int blocks);

}  // namespace harpe::cuda
