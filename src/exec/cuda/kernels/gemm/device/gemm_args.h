#pragma once

#include "exec/cuda/device/copy_args.h"
#include "exec/cuda/device/divisor.h"
#include "exec/cuda/device/used_rows.h"
#include "exec/cuda/signals/device/signal_args.h"

// C[M, N] = A[M, K] B[K, N], f32 accumulate. The rows of C are cut into panels, visited in the
// order given; the columns of a panel's A into pieces, used in the order given. So one kernel
// serves
// - a plain product: one panel of one piece without a flag;
// - rows that arrive: a panel per chunk, its piece has the chunk's address and flag;
// - columns of A that arrive: a panel of several pieces;
// - rows that leave: a panel per destination, its C at the peer's address, its counter there, or a
//   signal once all of it is there;
// - sums that arrive: blocks of C's shape are further pieces, whose A is the identity;
// - sums that all ranks need (few rows): panels of the same rows, one for each rank, and one that
//   adds up what all have stored here;
// - totals that all ranks need: a panel that is stored at each of them;
// - a bias and a gelu: maps of what is stored (GemmConfig::maps);
// - groups, as of experts: panels in a row share a B, and how many of their rows are used is known
//   as the kernel runs (GemmConfig::groups). Tiles take the used rows of a group's panels one after
//   the other, in chunks.
namespace harpe::device {

// Columns [k_begin, k_begin + k_count) of a panel's A, at an address of their own.
// Or, as an addend, X of C's shape: rows of it are B, along N however B lies, where A is the
// identity.
struct GemmPiece {
  TensorMap map;   // A: k_count x rows, box 64 x GemmConfig::tile_m or the panel's rows as a
                   // multiple of 8, the fewer: rows that are not there take as long as others and
                   // more. M-major: rows x k_count, box 64 x 64. X: n x rows, boxes as of B
  TensorMap rest;  // A where a tile has less of the panel's rows: box 64 x what the last tile has.
                   // Of pairs of blocks: box 64 x what the second one has
  TensorMap b;     // where `has_b`: B of these columns, which is apart from the others'
  FlagWait ready;
  std::int32_t has_b;
  std::int32_t k_begin;  // a multiple of 64, in B; 0 where that is the piece's own
  std::int32_t k_count;  // a multiple of 64 but for the last of B; of an addend a cluster's rows
  std::int32_t is_addend;
  std::int32_t a_bytes;     // of a stage: a box of A, or of an addend's identity
  std::int32_t rest_bytes;  // the same of `rest`
  void* address;            // of few rows' addends, which have no map
  std::int64_t stride;      // elements from row to row
  std::int32_t is_in_data;  // of these: `ready` is no word, but each element once it is there
};

struct GemmPanel {
  TensorMap c;  // n x rows, box GemmConfig::store_columns() x 64
  void* c_address;
  std::int64_t c_stride;   // elements from row to row
  std::uint32_t* done;     // grows by one per stored block of a consumer; null: nobody waits
  std::uint32_t arrivals;  // not 0: when it has grown so far, it is 0 again and `raise` is raised
  RaiseTarget raise;
  std::int32_t is_in_data;  // of few rows: nothing is raised; elements say that they are there
  std::int32_t rows;
  std::int32_t first_tile;  // cluster tiles of the panels before
  Divisor last_band;        // rows of cluster tiles in the last band (GemmArgs::group)
  std::int32_t first_piece;
  std::int32_t k_blocks;  // of 64, of all pieces and addends
  std::int32_t products;  // of these, before addends
  std::int32_t addends;   // behind its pieces, of few rows: where it may not be stored before
  std::int32_t first_addend;
  // The panel whose rows it has, where it brings none, else -1. Of few rows it stores the same
  // sums, or a total; else what that one stores.
  std::int32_t rows_of;
  std::int32_t b_first;  // of groups: the row of the array behind GemmArgs::b where B begins
  UsedRows used;         // of groups
};

struct GemmArgs {
  TensorMap b;
  TensorMap identity;  // of addends: a cluster's rows, box 64 x GemmConfig::tile_m
  static constexpr int kFew = 8;
  GemmPanel few_panels[kFew];
  GemmPiece few_pieces[kFew];
  const GemmPanel* panels;  // null: few_panels
  const GemmPiece* pieces;  // null: few_pieces
  WaitContext wait;
  std::int32_t panel_count;
  std::int32_t row_panels;  // the first, which bring rows of A
  std::int32_t has_addends;
  std::int32_t waits;         // pieces that have a flag; 0: nothing is watched for
  std::int32_t addend_flags;  // of them addends that are not in data, of few rows
  std::int32_t n;
  std::int32_t n_tiles;     // ceil(n / tile_n)
  std::int32_t tiles;       // cluster tiles of all panels
  std::int32_t full_tiles;  // the rest are cut along K into `parts` and summed in order
  Divisor parts;            // of few rows: streams
  Divisor tile_blocks;      // of few rows: K blocks of a tile
  Divisor stream_blocks;    // of few rows: blocks, or pairs of blocks, of a stream
  std::int32_t rows_each;   // of pairs of blocks: rows of the tile that the first one has
  std::int32_t b_is_fixed;  // 1 where no kernel of the execution writes B; else it comes with A
  Bounds bounds;            // of whole executions
  Divisor group;            // tile rows that are walked together, a band, for the L2 cache
  Divisor band;             // tiles of a band
  float* partials;         // of cut tiles: [tile][part][block of a consumer]; of few rows: [stream]
  float* kept;             // of few rows, sums that have addends: [row of the tile][column]
  std::uint32_t* tickets;  // of cut tiles, zero before and after: [tile][block of the cluster]
  const void* map_rows[2];  // as GemmConfig::maps: the row of an AddRow, of n elements
  const CopyJob* copies;
  std::int32_t copy_count;
  std::int32_t copy_blocks;  // the first blocks of the grid copy; a multiple of the cluster
  std::int32_t b_apart;      // of few rows: clocks between the loads that fill the ring with B
};

}  // namespace harpe::device
