#pragma once

#include "exec/cuda/device/copy_args.h"
#include "exec/cuda/kernels/attention/device/kv_walk.h"

// The arguments of an attention kernel, for host and device.
namespace harpe::device {

inline constexpr int kMaxAttentionPanels = 8;
inline constexpr int kMaxAttentionChunks = 32;

// Consecutive query rows and the place of their results, which may be on another GPU. Addresses are
// those of the panel's first row; rows of results begin at multiples of 16 bytes.
struct AttentionPanel {
  TensorMap queries;            // query_dim, heads, rows, batch; boxes of 64 columns by 64 rows
  void* output;                 // [batch, row, head, value_dim], `strides`
  float* lse;                   // [batch, head, row], natural logarithm; may be null
  const float* carried_output;  // normalised, `carried_strides`
  const float* carried_lse;     // as `lse`
  AttentionStrides strides;
  AttentionStrides carried_strides;
  AttentionStrides lse_strides;
  FlagWait ready;       // announces the queries
  std::uint32_t* done;  // may be null; grows by 1 for each warpgroup of each finished tile
  int rows;
  int position;  // logical position of the first row
};

// Consecutive keys and values that arrive together; their extent is in AttentionArgs::extents.
struct AttentionChunk {
  TensorMap keys;    // query_dim, kv_heads, rows, batch; boxes of 64 columns by kv_tile rows
  TensorMap values;  // value_dim, likewise
  FlagWait ready;
};

// Members are in the order of first use, so that those read together share constant-cache lines.
struct AttentionArgs {
  std::uint32_t* ticket;  // 0 before and after each launch
  const CopyJob* copies;
  int copy_count;
  int copy_blocks;  // the first thread blocks of the grid copy
  KvMask mask;
  int panel_count;
  int chunk_count;
  int heads;
  int heads_per_kv_head;
  int parts;             // parts of a batch entry's keys; each is an entry with the same queries
  int slices;            // batch x parts x heads
  int slices_per_group;  // slices that run together, so that their keys stay in the L2 cache
  int tiles;             // query tiles of a slice, over all panels
  float scale_log2;      // scale of the scores x log2(e), positive
  float slack;           // how far a row's reference may lie below its maximum, in scores
  WaitContext wait;
  KvExtent extents[kMaxAttentionChunks];
  AttentionPanel panels[kMaxAttentionPanels];
  AttentionChunk chunks[kMaxAttentionChunks];
};

}  // namespace harpe::device
