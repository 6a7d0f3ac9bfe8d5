#pragma once

#include "exec/cuda/device/copy_args.h"
#include "exec/cuda/device/divisor.h"
#include "exec/cuda/device/used_rows.h"
#include "exec/cuda/signals/device/signal_args.h"

// C[M, N] = A[M, K] B[K, N] with f32 accumulation. The rows of C are cut into row panels, and the
// columns of a panel's A into K chunks (GemmKChunk). Both are used in the order given, so one
// kernel serves
// - a plain GEMM: one panel with one K chunk and no flag;
// - rows of A that arrive: a panel for each arrival, whose K chunk has its address and flag;
// - columns of A that arrive: a panel of several K chunks;
// - rows of C that leave: a panel for each destination, with C at the peer's address and either a
//   counter there or a signal that is raised once the whole panel is stored;
// - addends, sums that arrive: further K chunks of C's shape, multiplied by the identity;
// - sums that all ranks need (by threads): panels of the same rows, one for each rank, and one
//   panel that adds up what all ranks have stored here;
// - totals that all ranks need: a panel that is stored at each rank;
// - a bias and a gelu: maps of what is stored (GemmConfig::maps);
// - grouped GEMMs, such as experts: consecutive panels share a B, and the kernel reads how many of
//   their rows are in use (GemmConfig::groups). A tile takes used rows of the group's panels one
//   after the other, in chunks.
namespace harpe::device {

// Columns [k_begin, k_begin + k_count) of a panel's A, at an address of their own; or an addend X
// of C's shape. Rows of X are loaded as B, always along N, and multiplied by the identity as A.
struct GemmKChunk {
  TensorMap map;   // A: k_count x rows, box 64 x GemmConfig::tile_m, or, if fewer, the panel's rows
                   // rounded up to 8, since TMA takes longer for rows out of bounds than for
                   // others. M-major: rows x k_count, box 64 x 64. X: n x rows, boxes as of B
  TensorMap rest;  // A for the panel's last tile: box 64 x the rows of that tile.
                   // With pairs of thread blocks: box 64 x the rows of the second block
  TensorMap b;     // if `has_b`: the chunk's own B
  FlagWait ready;
  std::int32_t has_b;
  std::int32_t k_begin;  // in GemmArgs::b, a multiple of 64; 0 if `has_b`
  std::int32_t k_count;  // a multiple of 64 except at the end of K; addend: rows of a cluster tile
  std::int32_t is_addend;
  std::int32_t a_bytes;     // bytes of A in a stage: a box of A or of the identity
  std::int32_t rest_bytes;  // the same with `rest`
  void* address;            // of an addend that threads load, which has no map
  std::int64_t stride;      // elements from row to row of that addend
  std::int32_t is_in_data;  // threads poll the addend's elements, not `ready.flag`
};

struct GemmPanel {
  TensorMap c;  // n x rows, box GemmConfig::store_columns() x store_rows(); groups: x chunk_rows()
  void* c_address;
  std::int64_t c_stride;   // elements from row to row
  std::uint32_t* done;     // grows by one per block of C that a consumer stored; null: not counted
  std::uint32_t arrivals;  // not 0: at this count `done` is reset to 0 and `raise` is raised
  RaiseTarget raise;
  std::int32_t is_in_data;  // stored by threads: no signal is raised; readers poll the elements
  std::int32_t rows;
  std::int32_t first_tile;  // cluster tiles of all preceding panels
  Divisor last_band;        // rows of cluster tiles in the last band (GemmArgs::group)
  std::int32_t first_k_chunk;
  std::int32_t k_blocks;  // blocks of 64 columns, of all K chunks and addends
  std::int32_t products;  // blocks of K chunks alone; those of addends follow
  std::int32_t addends;   // of those that threads load; the panel is stored after they arrived
  std::int32_t first_addend;
  // The panel whose rows this one shares, -1: it has its own. By threads: it stores that panel's
  // sums, or the total of its addends. By TMA: it stores what that panel stores.
  std::int32_t rows_of;
  std::int32_t b_first;  // groups: the row of GemmArgs::b at which the group's B begins
  UsedRows used;         // groups
};

// What a thread block loads before it has looked for its units: the first K blocks of its first
// unit. All of it is here, because each further line of arguments that a block reads costs it some
// 200 clocks.
struct alignas(16) GemmFirst {
  enum Box : std::uint8_t { Whole, Rest, None };  // of A: GemmKChunk::map, `rest`, or no rows
  std::uint16_t row;                              // in tiles of the panel
  std::uint16_t column;                           // in tiles
  std::uint16_t a_block;                          // K block of the K chunk
  std::uint16_t b_block;                          // K block of B
  std::uint32_t bytes;                            // that TMA brings into a stage
  std::uint8_t blocks;   // 0: none, since the block copies or awaits a flag
  std::uint8_t k_chunk;  // of GemmArgs::few_k_chunks
  Box box;
  std::uint8_t has_b : 1;       // the K chunk has its own B
  std::uint8_t b_is_ahead : 1;  // B may be loaded before the preceding kernel has ended
};

struct GemmArgs {
  TensorMap b;
  TensorMap identity;  // for addends: as large as a cluster's rows, box 64 x GemmConfig::tile_m
  static constexpr int kFew = 8;
  GemmPanel few_panels[kFew];
  GemmKChunk few_k_chunks[kFew];
  static constexpr int kMostFirst = 132;
  GemmFirst first[kMostFirst];  // by thread block; further ones have none
  const GemmPanel* panels;      // null: few_panels
  const GemmKChunk* k_chunks;   // null: few_k_chunks
  WaitContext wait;
  std::int32_t panel_count;
  std::int32_t row_panels;  // panels with their own rows of A; they come first
  std::int32_t has_addends;
  // K chunks and addends that have a flag; few rows: and the waits of `bounds`. 0: awaits nothing.
  std::int32_t waits;
  std::int32_t addend_flags;  // those of addends that threads load and that are not in data
  std::int32_t n;
  std::int32_t n_tiles;     // ceil(n / tile_n)
  std::int32_t tiles;       // cluster tiles of all panels; few rows: n_tiles
  std::int32_t full_tiles;  // the rest are cut along K into `parts` and summed in order
  Divisor parts;            // few rows: streams
  Divisor tile_blocks;      // few rows: K blocks of a tile
  Divisor stream_blocks;    // few rows: thread blocks, or pairs of them, of a stream
  std::int32_t rows_each;   // few rows, pairs: rows of the tile that the first block has
  std::int32_t b_is_fixed;  // 1: no kernel of the execution writes B; 0: B arrives with A
  Bounds bounds;            // Entry and Exit work of the kernel, where it bounds executions
  Divisor group;            // tile rows of a band, which are walked together for the L2 cache
  Divisor band;             // tiles of a band
  float* partials;          // cut tiles: [tile][part][consumer's block of C]; few rows: [stream]
  float* kept;              // few rows: sums that await addends, [row of the tile][column]
  std::uint32_t* tickets;  // cut tiles: two by [tile][consumer's block of C], zero before and after
  const void* map_rows[2];  // the row of each AddRow in GemmConfig::maps, n elements
  CopyJob few_copies[kFew];
  const CopyJob* copies;  // null: few_copies; of few rows never
  std::int32_t copy_count;
  std::int32_t copy_blocks;  // the first thread blocks of the grid copy; a multiple of the cluster
  // Tile kernels: the unit from which on blocks that have copied compute too; no copy then waits.
  std::int32_t joined;
  static constexpr std::int32_t kNeverJoined = 1 << 30;
  // With ping-pong, clocks from box to box of a block's last tile of sums for other ranks, if tiles
  // of totals follow; 0: the boxes leave at once.
  std::int32_t last_clocks;
  std::int32_t b_apart;  // few rows: clocks between the loads that first fill the ring with B
};

}  // namespace harpe::device
