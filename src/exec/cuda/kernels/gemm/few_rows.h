#pragma once

#include "exec/cuda/kernels/gemm/gemm.h"

namespace harpe::cuda {

// Requirements and the choice model of the few-row variants (device/few_rows.cuh). "Blocks" are
// thread blocks.

// Rows of the one tile: those of all panels, each rounded up to a multiple of 8.
[[nodiscard]] std::int64_t rows_in_tile(const GemmSpec& spec);

// Of these, the rows of one block. In a pair, the first block has as many, the second no more.
[[nodiscard]] std::int64_t rows_each(const GemmSpec& spec, const device::GemmConfig& config);

// Blocks of a stream; they form a cluster.
[[nodiscard]] int cluster_of(const GemmChoice& choice);

// Whether a variant with this tile can run the spec, apart from types. The tile must be the
// smallest that holds the rows, K chunks must be in the order of K, and C is not accumulated into.
[[nodiscard]] bool suits_few_rows(const GemmSpec& spec, const device::GemmConfig& config);

// The most streams that B may be cut into, with `stream_blocks` blocks, or pairs, to a stream.
[[nodiscard]] int most_streams(const GemmSpec& spec, const device::GemmConfig& config,
                               int stream_blocks);

// Whether a stream may have `stream_blocks` blocks, or pairs: an inbox must hold what the other
// blocks send, and the number of copying blocks must be a multiple of the cluster.
[[nodiscard]] bool can_share_streams(const GemmSpec& spec, const device::GemmConfig& config,
                                     int stream_blocks);

// The number of clusters of `stream_blocks` that run at once on `blocks` SMs. A cluster lies
// within one GPC of 14 to 18 SMs; clusters of four and more leave some SMs of a GPC unused.
[[nodiscard]] int clusters_of(int blocks, int stream_blocks);

// Bytes per clock of an H200 where no two blocks read the same weights: what memory delivers to
// `blocks` blocks together, and what the L2 cache delivers to all blocks, of both operands.
[[nodiscard]] double streamed_from_memory(double blocks);
inline constexpr double kStreamedThroughCache = 6280.0;

// Clocks between the loads with which each of `blocks` blocks first fills its ring with weights;
// 0: no pause. While rows are awaited, these loads are no faster than memory delivers them: stores
// and fences of the rows' senders queue behind all loads that wait for memory.
[[nodiscard]] int clocks_between_loads(const GemmSpec& spec, const device::GemmConfig& config,
                                       int blocks);

// The best number of streams for `blocks` blocks, and their estimated clocks; a pure function.
struct StreamEstimate {
  int streams = 1;
  int stream_blocks = 1;
  double clocks = 0;
};
[[nodiscard]] StreamEstimate estimate_streams(const GemmSpec& spec,
                                              const device::GemmConfig& config, int blocks);

}  // namespace harpe::cuda
