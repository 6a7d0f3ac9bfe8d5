#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/actions/rows.h"
#include "ir/dtype.h"

namespace harpe::actions {

// Actions whose addresses depend on a route's index (commir.md 8). A slab is the part of a ragged
// axis that tokens of one source block fill: for every expert, slot s of the slab belongs to the
// s-th of these tokens, in order, that chose this expert.

// Tokens of a slab that are adjacent in memory. Strides in bytes.
struct TokenRun {
  std::int64_t tokens = 0;
  const std::byte* index = nullptr;
  std::int64_t index_stride = 0;  // from token to token
  std::int64_t choice_stride = 0;
  std::byte* rows = nullptr;  // GatherRows: sources; CombineRows: sums; null: only counted
  std::int64_t row_stride = 0;
  DType row_dtype = DType::F32;
  const std::byte* weights = nullptr;  // CombineRows
  std::int64_t weight_stride = 0;
  std::int64_t weight_choice_stride = 0;
  DType weight_dtype = DType::F32;
  bool accumulate = false;  // the sums hold contributions already
};

// The slots of a slab, for one expert, that lie in one block.
struct SlotRun {
  std::int64_t before = 0;  // slots of the slab before these
  std::int64_t slots = 0;
  std::byte* data = nullptr;
  std::int64_t stride = 0;  // bytes
  DType dtype = DType::F32;
  std::int32_t* used = nullptr;  // GatherRows: receives the number of filled slots
};

struct SlabWalk {
  std::vector<TokenRun> runs;  // all tokens of the slab, in order
  std::int64_t choices = 0;
  DType index_dtype = DType::I32;
  std::int64_t first_expert = 0;
  std::vector<std::vector<SlotRun>> slots;  // per expert from the first on; empty: not needed
  std::int32_t* counts = nullptr;           // scratch: one per expert
};

// slots[expert][slot] = the token's row.
struct GatherRows {
  SlabWalk walk;
  Rows features;      // of (slots, sources)
  bool pads = false;  // slots that no choice fills are zeroed and count as used
};

// sums[token] += weight * slots[expert][slot] over the token's choices.
struct CombineRows {
  SlabWalk walk;
  Rows features;  // of (sums, slots)
};

// kept[token] = wanted[first + token], or -1 if the expert already has `capacity` choices before
// it; strides in bytes.
struct LimitChoices {
  const std::byte* wanted = nullptr;  // of all tokens
  std::int64_t wanted_stride = 0;
  std::int64_t wanted_choice_stride = 0;
  std::byte* kept = nullptr;
  std::int64_t kept_stride = 0;
  std::int64_t kept_choice_stride = 0;
  std::int64_t first = 0;
  std::int64_t tokens = 0;
  std::int64_t choices = 0;
  std::int64_t experts = 0;
  std::int64_t capacity = 0;
  DType wanted_dtype = DType::I32;
  DType kept_dtype = DType::I32;
  std::unique_ptr<std::int64_t[]> taken;  // scratch: per expert
};

// Per token: the largest logits and their softmax; strides in bytes.
struct ChooseExperts {
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::int64_t choices = 0;
  const std::byte* logits = nullptr;
  DType logit_dtype = DType::F32;
  std::int64_t logit_stride = 0;
  std::int64_t expert_stride = 0;
  std::byte* index = nullptr;
  DType index_dtype = DType::I32;
  std::int64_t index_stride = 0;
  std::int64_t index_choice_stride = 0;
  std::byte* weights = nullptr;
  DType weight_dtype = DType::F32;
  std::int64_t weight_stride = 0;
  std::int64_t weight_choice_stride = 0;
};

}  // namespace harpe::actions
