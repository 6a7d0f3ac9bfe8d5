#pragma once

#include "exec/cuda/device/types.h"

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

}  // namespace harpe::device
