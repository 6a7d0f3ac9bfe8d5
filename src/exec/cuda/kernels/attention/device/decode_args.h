#pragma once

#include "exec/cuda/kernels/attention/device/decode_order.h"
#include "exec/cuda/signals/device/signal_args.h"

// The arguments of the kernel for few queries over long keys, for host and device.
namespace harpe::device {

// Tables of the keys that exist. The kernel reads the entries.
struct DecodeTables {
  const std::int32_t* lengths;   // keys of each sequence; null: all
  const std::int32_t* pages;     // page of the storage that has the next keys; null: keys in order
  std::int64_t length_stride;    // from sequence to sequence, in entries
  std::int64_t page_stride;      // from page to page
  std::int64_t sequence_stride;  // from sequence to sequence, of pages
  int page_count;                // pages of a sequence
  Divisor page;                  // keys of a page
  int first_key;                 // index in the sequence, or the storage, of the first key here
};

// What the loading warp reads first comes first: a line of arguments that a block has not read yet
// takes some 200 clocks.
struct DecodeArgs {
  TensorMap keys;    // head_dim, kv_heads, rows, batch; boxes of 64 columns by box_rows
  TensorMap values;  // likewise; unused if keys hold their values
  DecodeTables tables;
  int keys_are_fixed;     // no kernel of the execution writes keys, values or tables
  int keys_per_sequence;  // rows of keys on this rank; with pages, of its whole storage
  int batch;
  Divisor kv_heads;
  Divisor shares;   // thread blocks of the grid
  Divisor tiles;    // key tiles of each pair, unless there are lengths
  int box_rows;     // of keys and values; divides a tile, and a page
  int boxes;        // of a tile of keys, or of values
  int batch_step;   // 0: all sequences share one storage; else 1
  DecodeCuts cuts;  // read only with cuts_heads(DecodeConfig)
  Divisor group;    // query heads of a head group
  int queries_per_sequence;
  float scale_log2;     // scale of the scores x log2(e), positive
  float slack;          // how far a column's reference may lie below its maximum, in scores
  const void* queries;  // [batch, row, head, head_dim], `query_strides`
  AttentionStrides query_strides;
  void* output;  // [batch, row, head, value_dim], `strides`
  float* lse;    // natural logarithm; may be null
  AttentionStrides strides;
  AttentionStrides lse_strides;
  float* states;  // state_floats for each thread block; all bits are 1 before and after
};

inline constexpr int kMostDecodeResults = 8;
inline constexpr int kMostDecodeAddends = 16;

// A state that another rank stores here, for the heads of a result.
struct DecodeAddend {
  const float* output;
  const float* lse;
  AttentionStrides strides;
  AttentionStrides lse_strides;
  FlagWait ready;
};

// The place of some heads. Without addends it receives an f32 state; with addends the kernel's own
// state combined with them.
struct DecodeResult {
  void* output;  // of its first head, as DecodeArgs::output
  float* lse;
  AttentionStrides strides;
  AttentionStrides lse_strides;
  std::int32_t first_addend;
  std::int32_t addends;
  std::uint32_t* done;     // grows by one per pair that has heads here
  std::uint32_t arrivals;  // at this count `done` is reset to 0 and `raise` is raised; 0: never
  std::uint32_t no_gap;
  RaiseTarget raise;
};

// Further arguments of kernels that store heads at several places (DecodeConfig::exchanges).
struct DecodeExchange {
  DecodeResult results[kMostDecodeResults];
  DecodeAddend addends[kMostDecodeAddends];
  WaitContext wait;
  float* kept;    // states that await addends: [pair][column of a thread][block of values][thread],
                  // four floats each
  Divisor heads;  // of each result
  std::int32_t result_count;
  std::int32_t addend_count;  // 0: the kernel awaits nothing
  std::int32_t no_gap;
};

struct DecodeExchangeArgs {
  DecodeArgs decode;
  DecodeExchange exchange;
  Bounds bounds;
};

}  // namespace harpe::device
