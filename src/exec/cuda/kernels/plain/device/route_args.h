#pragma once

#include "exec/cuda/kernels/plain/device/plain_args.h"

// The arguments of kernels that follow a route (exec/actions/route_actions.h), for host and device.
// Steps in bytes.
namespace harpe::device {

inline constexpr int kRouteThreads = 256;
inline constexpr int kRouteEntries = 512;       // the most choices of a thread block's tokens
inline constexpr int kRouteMostExperts = 2048;  // the most experts of a walk

// A table with an entry per token and choice: indices of 32 or 64 bits, or weights.
struct ChoiceTable {
  const void* data;
  std::int64_t token_stride;
  std::int64_t choice_stride;
};

// Tokens of a slab that are adjacent in memory.
struct RouteRun {
  std::int64_t first;  // number of the slab's tokens before these
  std::int64_t tokens;
  ChoiceTable index;
  ChoiceTable weights;  // combine_rows
  void* rows;           // null: the tokens are only counted
  std::int64_t row_stride;
  bool accumulate;
};

// The slots of a slab, for one expert, that lie in one block.
struct RoutePlace {
  std::int64_t before;  // number of the expert's slots before these
  std::int64_t slots;
  void* data;
  std::int64_t stride;
  std::int32_t* used;  // gather_rows: receives the number of filled slots
};

// A walk over a slab. Its choices are taken in order; each gets the next slot of its expert.
struct RouteArgs {
  // In GPU memory: all runs, then at these byte offsets all places ordered by expert, and the index
  // of each expert's first place (experts + 1 entries).
  const void* table;
  std::int64_t places_at;
  std::int64_t first_places_at;
  std::int32_t runs;
  std::int32_t experts;
  std::int32_t choices;          // per token
  std::int32_t tokens_of_block;  // times `choices` at most kRouteEntries
  std::int64_t tokens;           // of all runs
  std::int64_t first_expert;
  bool wide_index;
  bool pads;  // gather_rows: stores zeros into slots that no choice fills
  Number row_number;
  Number slot_number;
  Number weight_number;
  // Loops over a row; operands: result, source. An iteration is a word of `word_bytes` bytes. If
  // word_bytes is 0, it is a number that is converted or summed, or map_width() with `vectors`.
  LoopNest<2> nest;
  std::int64_t turns;
  std::int32_t word_bytes;
  bool vectors;
};

struct LimitArgs {
  ChoiceTable wanted;
  void* kept;
  std::int64_t kept_token_stride;
  std::int64_t kept_choice_stride;
  std::int64_t first;  // the first token whose choices are stored; earlier ones are only counted
  std::int64_t tokens;
  std::int64_t choices;
  std::int64_t experts;
  std::int64_t capacity;
  bool wanted_wide;
  bool kept_wide;
};

struct ChooseArgs {
  std::int64_t tokens;
  std::int64_t experts;
  std::int64_t choices;
  const void* logits;
  std::int64_t logit_stride;
  std::int64_t expert_stride;
  void* index;
  std::int64_t index_stride;
  std::int64_t index_choice_stride;
  void* weights;
  std::int64_t weight_stride;
  std::int64_t weight_choice_stride;
  Number logit_number;
  Number weight_number;
  bool wide_index;
};

}  // namespace harpe::device
