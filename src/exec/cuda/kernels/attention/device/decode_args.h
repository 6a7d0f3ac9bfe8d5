#pragma once

#include "exec/cuda/device/types.h"
#include "exec/cuda/signals/device/signal_args.h"

// What a kernel for few queries of long keys is launched with. Host and device.
namespace harpe::device {

// What tables say of which keys there are. Entries are read as the kernel runs.
struct DecodeTables {
  const std::int32_t* lengths;   // keys of each sequence; null: all
  const std::int32_t* pages;     // which page of the storage has the next keys; null: keys in order
  std::int64_t length_stride;    // from sequence to sequence, in entries
  std::int64_t page_stride;      // from page to page
  std::int64_t sequence_stride;  // from sequence to sequence, of pages
  int page_count;                // of a sequence
  int page;                      // keys of one
  int first_key;                 // place in the sequence, or in the storage, of the first key here
};

struct DecodeArgs {
  TensorMap queries;  // head_dim, heads, rows, batch; boxes of 64 columns, a group of heads, rows
  TensorMap keys;     // head_dim, kv_heads, rows, batch; boxes of 64 columns by box_rows
  TensorMap values;   // likewise
  void* output;       // [batch, row, head, head_dim], `strides`
  float* lse;         // natural logarithm; may be null
  AttentionStrides strides;
  AttentionStrides lse_strides;
  DecodeTables tables;
  float* states;  // state_floats for each block of the grid; all bits are 1 before and after
  int batch;
  int kv_heads;
  int group;  // heads that share keys
  int queries_per_sequence;
  int keys_per_sequence;  // rows of keys here; of pages, of the whole storage here
  int batch_step;         // 0: all sequences share one storage, else 1
  int box_rows;           // of keys and values; divides a tile, and a page
  int keys_are_fixed;     // no kernel of the execution writes keys, values or tables
  float scale_log2;       // scale of the scores x log2(e), positive
  float slack;            // how far a column's reference may lie below its maximum, in scores
};

inline constexpr int kMostDecodeResults = 8;
inline constexpr int kMostDecodeAddends = 16;

// A state that another rank has stored here, of the heads of a result.
struct DecodeAddend {
  const float* output;
  const float* lse;
  AttentionStrides strides;
  AttentionStrides lse_strides;
  FlagWait ready;
};

// Where heads go. Without addends a state of f32; else what the kernel makes and its addends.
struct DecodeResult {
  void* output;  // of its first head, as DecodeArgs::output
  float* lse;
  AttentionStrides strides;
  AttentionStrides lse_strides;
  std::int32_t first_addend;
  std::int32_t addends;
  std::uint32_t* done;  // grows by one per pair of a sequence and a key head that has heads here;
  std::uint32_t
      arrivals;  // when it has grown so far, it is 0 again and `raise` is raised; 0: never
  std::uint32_t no_gap;
  RaiseTarget raise;
};

// What kernels whose heads go to several places are launched with (DecodeConfig::exchanges).
struct DecodeExchange {
  DecodeResult results[kMostDecodeResults];
  DecodeAddend addends[kMostDecodeAddends];
  WaitContext wait;
  float* kept;  // what waits for addends: [sequence and key head][column of a thread][thread], four
  std::int32_t heads;  // of each result
  std::int32_t result_count;
  std::int32_t addend_count;  // 0: nothing is waited for
  std::int32_t no_gap;
};

struct DecodeExchangeArgs {
  DecodeArgs decode;
  DecodeExchange exchange;
  Bounds bounds;
};

}  // namespace harpe::device
