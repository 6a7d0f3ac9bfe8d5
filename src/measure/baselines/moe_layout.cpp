#include "measure/baselines/moe_layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "support/check.h"

namespace harpe::library {
namespace {

constexpr std::int64_t kIndexBytes = 4;  // bytes of an index, a weight and a logit

// Counts the experts that one token's logits choose.
void count_token(const float* logits, std::int64_t choices, std::vector<std::int64_t>& order,
                 std::vector<std::int64_t>& counts) {
  std::iota(order.begin(), order.end(), 0);
  const auto comes_first = [&](std::int64_t one, std::int64_t other) {
    return logits[one] != logits[other] ? logits[one] > logits[other] : one < other;
  };
  std::ranges::partial_sort(order, order.begin() + choices, comes_first);
  for (std::int64_t i = 0; i < choices; ++i) {
    ++counts[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
  }
}

std::int64_t at(const std::vector<std::int64_t>& values, std::int64_t index) {
  return values[static_cast<std::size_t>(index)];
}

// Exclusive prefix sums, followed by the total.
std::vector<std::int64_t> firsts_of(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> firsts = {0};
  for (const std::int64_t count : counts) firsts.push_back(firsts.back() + count);
  return firsts;
}

void add_message(std::vector<RowMessage>& messages, int peer, std::int64_t first,
                 std::int64_t rows) {
  if (rows > 0) messages.push_back({.peer = peer, .first = first, .rows = rows});
}

// The bucket of each row.
std::vector<std::int32_t> repeated(const std::vector<std::int64_t>& counts,
                                   const std::vector<std::int64_t>& buckets) {
  std::vector<std::int32_t> of_rows;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    of_rows.insert(of_rows.end(), static_cast<std::size_t>(counts[i]),
                   static_cast<std::int32_t>(buckets[i]));
  }
  return of_rows;
}

actions::Rows whole_row(const MoeSizes& sizes) {
  const std::vector<std::int64_t> strides[] = {{1}, {1}};
  return {std::vector<std::int64_t>{sizes.hidden}, strides};
}

// Rows in buckets, one after the other.
std::vector<std::vector<actions::SlotRun>> slots_of(const MoeSizes& sizes,
                                                    const std::vector<std::int64_t>& firsts,
                                                    std::byte* rows, std::int32_t* used) {
  std::vector<std::vector<actions::SlotRun>> slots(firsts.size() - 1);
  for (std::size_t bucket = 0; bucket < slots.size(); ++bucket) {
    const std::int64_t count = firsts[bucket + 1] - firsts[bucket];
    if (count == 0) continue;
    slots[bucket].push_back({.before = 0,
                             .slots = count,
                             .data = rows + firsts[bucket] * sizes.row_bytes(),
                             .stride = sizes.row_bytes(),
                             .dtype = sizes.dtype,
                             .used = used + bucket});
  }
  return slots;
}

// The tokens of a rank, whose rows are sources or sums.
actions::SlabWalk tokens_walk(const MoeSizes& sizes, const MoeLayout& layout, const MoePlaces& at,
                              std::byte* rows, std::byte* slots) {
  actions::SlabWalk walk;
  walk.runs.push_back({.tokens = sizes.tokens,
                       .index = at.index,
                       .index_stride = sizes.choices * kIndexBytes,
                       .choice_stride = kIndexBytes,
                       .rows = rows,
                       .row_stride = sizes.row_bytes(),
                       .row_dtype = sizes.dtype});
  walk.choices = sizes.choices;
  walk.slots = slots_of(sizes, layout.sent, slots, at.used);
  walk.counts = at.counts;
  return walk;
}

// Sorts rows into buckets and keeps their order within each.
actions::GatherRows sorted_by(const MoeSizes& sizes, const std::vector<std::int32_t>& buckets,
                              const std::byte* index, std::byte* from,
                              std::vector<std::vector<actions::SlotRun>> slots,
                              std::int32_t* counts) {
  actions::GatherRows gather{.walk = {}, .features = whole_row(sizes)};
  gather.walk.runs.push_back({.tokens = static_cast<std::int64_t>(buckets.size()),
                              .index = index,
                              .index_stride = kIndexBytes,
                              .choice_stride = kIndexBytes,
                              .rows = from,
                              .row_stride = sizes.row_bytes(),
                              .row_dtype = sizes.dtype});
  gather.walk.choices = 1;
  gather.walk.slots = std::move(slots);
  gather.walk.counts = counts;
  return gather;
}

}  // namespace

MoeCounts count_choices(const MoeSizes& sizes, const HostTensor& logits) {
  const std::int64_t experts = sizes.all_experts();
  HP_CHECK(
      logits.dtype == DType::F32 && element_count(logits) == sizes.ranks * sizes.tokens * experts,
      "logits are of all tokens and experts, in f32");
  std::vector<std::int64_t> order(static_cast<std::size_t>(experts));
  std::vector<float> row(static_cast<std::size_t>(experts));
  MoeCounts counts;
  for (int rank = 0; rank < sizes.ranks; ++rank) {
    std::vector<std::int64_t>& of_rank = counts.emplace_back(order.size(), 0);
    for (std::int64_t token = 0; token < sizes.tokens; ++token) {
      const std::int64_t first = (rank * sizes.tokens + token) * experts;
      std::memcpy(row.data(), logits.data.data() + first * kIndexBytes, row.size() * sizeof(float));
      count_token(row.data(), sizes.choices, order, of_rank);
    }
  }
  return counts;
}

MoeLayout layout_of(const MoeSizes& sizes, const MoeCounts& counts, int rank,
                    MoeMessages messages) {
  MoeLayout layout;
  layout.sent = firsts_of(counts[static_cast<std::size_t>(rank)]);
  const std::int64_t own = rank * sizes.experts;  // the first of this rank's experts
  std::vector<std::int64_t> of_experts(static_cast<std::size_t>(sizes.experts), 0);
  std::vector<std::int64_t> of_ranks(static_cast<std::size_t>(sizes.ranks), 0);
  const auto count = [&](std::int64_t source, std::int64_t expert) {
    return at(counts[static_cast<std::size_t>(source)], own + expert);
  };
  std::vector<std::int64_t> arriving;  // by rank, then by expert
  std::vector<std::int64_t> arriving_experts;
  std::vector<std::int64_t> multiplied;  // by expert, then by rank
  std::vector<std::int64_t> multiplied_ranks;
  for (std::int64_t source = 0; source < sizes.ranks; ++source) {
    for (std::int64_t expert = 0; expert < sizes.experts; ++expert) {
      of_experts[static_cast<std::size_t>(expert)] += count(source, expert);
      of_ranks[static_cast<std::size_t>(source)] += count(source, expert);
      arriving.push_back(count(source, expert));
      arriving_experts.push_back(expert);
    }
  }
  layout.grouped = firsts_of(of_experts);
  layout.sources = firsts_of(of_ranks);
  for (std::int64_t expert = 0; expert < sizes.experts; ++expert) {
    for (std::int64_t source = 0; source < sizes.ranks; ++source) {
      multiplied.push_back(count(source, expert));
      multiplied_ranks.push_back(source);
    }
  }
  const std::vector<std::int64_t> places = firsts_of(multiplied);
  for (int peer = 0; peer < sizes.ranks; ++peer) {
    const std::int64_t first = peer * sizes.experts;
    if (messages == MoeMessages::OfRanks) {
      add_message(layout.sends, peer, at(layout.sent, first),
                  at(layout.sent, first + sizes.experts) - at(layout.sent, first));
      add_message(layout.receives, peer, at(layout.sources, peer), at(of_ranks, peer));
      continue;
    }
    for (std::int64_t expert = 0; expert < sizes.experts; ++expert) {
      add_message(layout.sends, peer, at(layout.sent, first + expert),
                  at(layout.sent, first + expert + 1) - at(layout.sent, first + expert));
      add_message(layout.receives, peer, at(places, expert * sizes.ranks + peer),
                  count(peer, expert));
    }
  }
  if (messages == MoeMessages::OfRanks) {
    layout.experts_of_rows = repeated(arriving, arriving_experts);
    layout.ranks_of_rows = repeated(multiplied, multiplied_ranks);
  }
  return layout;
}

actions::ChooseExperts choose_action(const MoeSizes& sizes, const MoePlaces& at) {
  return {.tokens = sizes.tokens,
          .experts = sizes.all_experts(),
          .choices = sizes.choices,
          .logits = at.router,
          .logit_dtype = DType::F32,
          .logit_stride = sizes.all_experts() * kIndexBytes,
          .expert_stride = kIndexBytes,
          .index = at.index,
          .index_dtype = DType::I32,
          .index_stride = sizes.choices * kIndexBytes,
          .index_choice_stride = kIndexBytes,
          .weights = at.weight,
          .weight_dtype = DType::F32,
          .weight_stride = sizes.choices * kIndexBytes,
          .weight_choice_stride = kIndexBytes};
}

actions::GatherRows send_action(const MoeSizes& sizes, const MoeLayout& layout,
                                const MoePlaces& at) {
  return {.walk = tokens_walk(sizes, layout, at, at.x, at.sent), .features = whole_row(sizes)};
}

actions::GatherRows group_action(const MoeSizes& sizes, const MoeLayout& layout,
                                 const MoePlaces& at) {
  return sorted_by(sizes, layout.experts_of_rows, at.experts_of_rows, at.received,
                   slots_of(sizes, layout.grouped, at.grouped, at.used), at.counts);
}

actions::Apply gate_action(const MoeSizes& sizes, const MoeLayout& layout, const MoePlaces& at) {
  const std::vector<std::int64_t> strides[] = {{sizes.inter}, {2 * sizes.inter}, {2 * sizes.inter}};
  actions::Apply apply{.first = {},
                       .rows = {std::vector<std::int64_t>{layout.received_rows()}, strides}};
  apply.first.function = Pointwise::SiluMul;
  apply.first.length = sizes.inter;
  apply.first.to = at.act;
  apply.first.to_dtype = sizes.dtype;
  apply.first.a = {.data = at.gates, .dtype = sizes.dtype};
  apply.first.b = {.data = at.gates + sizes.inter * size_in_bytes(sizes.dtype),
                   .dtype = sizes.dtype};
  return apply;
}

actions::GatherRows ungroup_action(const MoeSizes& sizes, const MoeLayout& layout,
                                   const MoePlaces& at) {
  return sorted_by(sizes, layout.ranks_of_rows, at.ranks_of_rows, at.made,
                   slots_of(sizes, layout.sources, at.leaving, at.used), at.counts);
}

actions::CombineRows combine_action(const MoeSizes& sizes, const MoeLayout& layout,
                                    const MoePlaces& at) {
  actions::CombineRows combine{.walk = tokens_walk(sizes, layout, at, at.y, at.returned),
                               .features = whole_row(sizes)};
  actions::TokenRun& run = combine.walk.runs.front();
  run.weights = at.weight;
  run.weight_stride = sizes.choices * kIndexBytes;
  run.weight_choice_stride = kIndexBytes;
  return combine;
}

}  // namespace harpe::library
