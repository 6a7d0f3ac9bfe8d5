#pragma once

#include "exec/cuda/device/numbers.cuh"
#include "exec/cuda/kernels/plain/device/route_args.h"

// Chooses experts for tokens, and drops choices beyond an expert's capacity.
namespace harpe::device {

HP_DEVICE std::int64_t read_integer(const void* data, bool wide) {
  return wide ? *static_cast<const std::int64_t*>(data) : *static_cast<const std::int32_t*>(data);
}

HP_DEVICE void write_integer(void* data, bool wide, std::int64_t value) {
  if (wide) {
    *static_cast<std::int64_t*>(data) = value;
  } else {
    *static_cast<std::int32_t*>(data) = static_cast<std::int32_t>(value);
  }
}

HP_DEVICE const void* entry_of(const ChoiceTable& table, std::int64_t token, std::int64_t choice) {
  return moved(table.data, token * table.token_stride + choice * table.choice_stride);
}

// Candidates are ordered by descending logit, then ascending expert.
struct Candidate {
  double logit;
  std::int64_t expert;  // -1: none

  [[nodiscard]] HP_DEVICE bool precedes(const Candidate& other) const {
    if (expert < 0 || other.expert < 0) return other.expert < 0;
    return logit > other.logit || (logit == other.logit && expert < other.expert);
  }
};

HP_DEVICE double logit_of(const ChooseArgs& args, std::int64_t token, std::int64_t expert) {
  const void* const at =
      moved(args.logits, token * args.logit_stride + expert * args.expert_stride);
  const double value = load_number<double>(at, args.logit_number, 0);
  return value == value ? value : none<double>();
}

// The first candidate after `last`. By a warp.
HP_DEVICE Candidate next_choice(const ChooseArgs& args, std::int64_t token, const Candidate& last) {
  Candidate best{none<double>(), -1};
  for (std::int64_t expert = threadIdx.x % 32; expert < args.experts; expert += 32) {
    const Candidate found{logit_of(args, token, expert), expert};
    const bool later =
        found.logit < last.logit || (found.logit == last.logit && expert > last.expert);
    if (later && found.precedes(best)) best = found;
  }
#pragma unroll
  for (int other = 16; other > 0; other /= 2) {
    const Candidate found{__shfl_xor_sync(~0U, best.logit, other),
                          __shfl_xor_sync(~0U, best.expert, other)};
    if (found.expert >= 0 && found.precedes(best)) best = found;
  }
  return best;
}

HP_DEVICE void choose_of_token(const ChooseArgs& args, std::int64_t token) {
  Candidate last{-none<double>(), -1};
  double largest = 0;
  double sum = 0;
  void* const index = moved(args.index, token * args.index_stride);
  const std::int64_t lane = threadIdx.x % 32;
  for (std::int64_t choice = 0; choice < args.choices; ++choice) {
    last = next_choice(args, token, last);
    if (choice == 0) largest = last.logit;
    sum += exp(last.logit - largest);
    if (lane == 0) {
      write_integer(moved(index, choice * args.index_choice_stride), args.wide_index, last.expert);
    }
  }
  __syncwarp();
  void* const weights = moved(args.weights, token * args.weight_stride);
  for (std::int64_t choice = lane; choice < args.choices; choice += 32) {
    const std::int64_t expert =
        read_integer(moved(index, choice * args.index_choice_stride), args.wide_index);
    const double weight = exp(logit_of(args, token, expert) - largest) / sum;
    store_number(moved(weights, choice * args.weight_choice_stride), args.weight_number, 0, weight);
  }
}

// One warp per token; the grid may have any number of thread blocks.
HP_DEVICE void choose_experts(const ChooseArgs& args) {
  for (std::int64_t token = thread_of_grid() / 32; token < args.tokens;
       token += threads_of_grid() / 32) {
    choose_of_token(args, token);
  }
}

// How many of the block's threads have `mine`: those before this thread, and all.
struct Ranks {
  std::int32_t before;
  std::int32_t all;
};

HP_DEVICE Ranks rank_in_block(bool mine, std::int32_t (&warps)[kRouteThreads / 32]) {
  const std::uint32_t lanes = __ballot_sync(~0U, mine);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  __syncthreads();  // all threads have read the previous counts
  if (threadIdx.x % 32 == 0) warps[warp] = __popc(lanes);
  __syncthreads();
  Ranks ranks{__popc(lanes & ((1U << threadIdx.x % 32) - 1)), 0};
#pragma unroll
  for (int i = 0; i < kRouteThreads / 32; ++i) {
    if (i < warp) ranks.before += warps[i];
    ranks.all += warps[i];
  }
  return ranks;
}

// One thread block per expert, and one for choices of no known expert. Each goes through all
// choices in order.
HP_DEVICE void limit_choices(const LimitArgs& args) {
  __shared__ std::int32_t warps[kRouteThreads / 32];
  const std::int64_t expert = blockIdx.x;
  const std::int64_t entries = (args.first + args.tokens) * args.choices;
  std::int64_t taken = 0;
#pragma unroll 1
  for (std::int64_t base = 0; base < entries; base += kRouteThreads) {
    const std::int64_t at = base + threadIdx.x;
    const std::int64_t token = at / args.choices;
    const std::int64_t choice = at - token * args.choices;
    const std::int64_t wanted =
        at < entries ? read_integer(entry_of(args.wanted, token, choice), args.wanted_wide) : -1;
    const bool known = wanted >= 0 && wanted < args.experts;
    const bool mine = at < entries && (known ? wanted : args.experts) == expert;
    const Ranks ranks = rank_in_block(mine, warps);
    const bool keeps = known && taken + ranks.before < args.capacity;
    taken += ranks.all;
    if (!mine || token < args.first) continue;
    void* const to = moved(args.kept, (token - args.first) * args.kept_token_stride +
                                          choice * args.kept_choice_stride);
    write_integer(to, args.kept_wide, keeps ? wanted : -1);
  }
}

}  // namespace harpe::device
