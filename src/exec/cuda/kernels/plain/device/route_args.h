#pragma once

#include "exec/cuda/kernels/plain/device/plain_args.h"

// What the kernels that follow a route are launched with (exec/actions/route_actions.h). Steps in
// bytes. Host and device.
namespace harpe::device {

inline constexpr int kRouteThreads = 256;
inline constexpr int kRouteEntries = 512;       // choices that a block has slots for at a time
inline constexpr int kRouteMostExperts = 2048;  // that a walk counts

// Choices in memory: 32-bit integers, or 64-bit ones.
struct ChoiceTable {
  const void* data;
  std::int64_t token_stride;
  std::int64_t choice_stride;
};

// Tokens of a slab, one after the other in memory.
struct RouteRun {
  std::int64_t first;  // tokens of the slab before these
  std::int64_t tokens;
  ChoiceTable index;
  ChoiceTable weights;  // of combine_rows
  void* rows;           // null: only counted
  std::int64_t row_stride;
  bool accumulate;
};

// Slots of the slab, of one expert, that lie in one block.
struct RoutePlace {
  std::int64_t before;
  std::int64_t slots;
  void* data;
  std::int64_t stride;
  std::int32_t* used;  // of gather_rows
};

// A walk over a slab: its choices in order, each with the next slot of its expert.
struct RouteArgs {
  // In memory of the GPU: all runs, all places by experts, and which place is each expert's first
  // (one more than experts), at so many bytes.
  const void* table;
  std::int64_t places_at;
  std::int64_t first_places_at;
  std::int32_t runs;
  std::int32_t experts;
  std::int32_t choices;          // of a token
  std::int32_t tokens_of_block;  // times `choices`: at most kRouteEntries
  std::int64_t tokens;           // of all runs
  std::int64_t first_expert;
  bool wide_index;
  bool pads;  // gather_rows: slots that no choice takes hold zeros
  Number row_number;
  Number slot_number;
  Number weight_number;
  // Over a row; operands: what is made, what it is made of. `turns` are words of so many bytes or,
  // where these are 0, numbers that are converted, one or `vectors` of them at a time.
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
  std::int64_t first;  // token whose choices are the first kept ones
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
