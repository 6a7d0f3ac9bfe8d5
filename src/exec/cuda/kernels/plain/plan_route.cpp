#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "exec/cuda/kernels/loop_nests.h"
#include "exec/cuda/kernels/plain/plain_plans.h"

namespace harpe::cuda {
namespace {

using actions::SlabWalk;
using actions::SlotRun;
using actions::TokenRun;

// Thread blocks per SM among which a walk is divided, if it is long enough.
constexpr std::int64_t kBlocksOfOne = 2;

// What all rows of one side have in common.
struct Side {
  DType dtype = DType::F32;
  std::uint64_t bits = 0;  // of all addresses and steps, or-ed: gives the common alignment
  bool any = false;

  // False if the type differs from that of the rows before.
  bool add(const void* data, std::int64_t stride, DType row_dtype) {
    const bool same = !any || dtype == row_dtype;
    dtype = row_dtype;
    bits |= address_of(data) | static_cast<std::uint64_t>(stride);
    any = true;
    return same;
  }
};

// A walk in the form that kernels take.
struct RouteWalk {
  device::RouteArgs args{};
  std::vector<std::byte> table;
  Side rows;  // of tokens
  Side slots;
  DType weight_dtype = DType::F32;
  bool uniform = true;  // each side has one type
};

template <class T>
std::int64_t append(std::vector<std::byte>& table, const std::vector<T>& entries) {
  const std::size_t at = (table.size() + 15) / 16 * 16;
  table.resize(at + entries.size() * sizeof(T));
  if (!entries.empty()) std::memcpy(table.data() + at, entries.data(), entries.size() * sizeof(T));
  return static_cast<std::int64_t>(at);
}

device::RouteRun plain_run(const TokenRun& run, std::int64_t first) {
  return {.first = first,
          .tokens = run.tokens,
          .index = {.data = run.index,
                    .token_stride = run.index_stride,
                    .choice_stride = run.choice_stride},
          .weights = {.data = run.weights,
                      .token_stride = run.weight_stride,
                      .choice_stride = run.weight_choice_stride},
          .rows = run.rows,
          .row_stride = run.row_stride,
          .accumulate = run.accumulate};
}

void add_runs(const SlabWalk& walk, RouteWalk& result) {
  std::vector<device::RouteRun> runs;
  bool weighs = false;
  for (const TokenRun& run : walk.runs) {
    runs.push_back(plain_run(run, result.args.tokens));
    result.args.tokens += run.tokens;
    if (run.rows != nullptr) {
      result.uniform = result.rows.add(run.rows, run.row_stride, run.row_dtype) && result.uniform;
    }
    if (run.weights == nullptr) continue;
    result.uniform = result.uniform && (!weighs || run.weight_dtype == result.weight_dtype);
    result.weight_dtype = run.weight_dtype;
    weighs = true;
  }
  result.args.runs = static_cast<std::int32_t>(runs.size());
  append(result.table, runs);
}

void add_places(const SlabWalk& walk, RouteWalk& result) {
  std::vector<device::RoutePlace> places;
  std::vector<std::int32_t> firsts = {0};
  for (const std::vector<SlotRun>& of_expert : walk.slots) {
    for (const SlotRun& run : of_expert) {
      places.push_back({.before = run.before,
                        .slots = run.slots,
                        .data = run.data,
                        .stride = run.stride,
                        .used = run.used});
      result.uniform = result.slots.add(run.data, run.stride, run.dtype) && result.uniform;
    }
    firsts.push_back(static_cast<std::int32_t>(places.size()));
  }
  result.args.places_at = append(result.table, places);
  result.args.first_places_at = append(result.table, firsts);
}

RouteWalk walk_of(const LaunchChoice& choice, const SlabWalk& walk) {
  RouteWalk result;
  add_runs(walk, result);
  add_places(walk, result);
  device::RouteArgs& args = result.args;
  args.experts = static_cast<std::int32_t>(walk.slots.size());
  args.choices = static_cast<std::int32_t>(walk.choices);
  args.first_expert = walk.first_expert;
  args.wide_index = walk.index_dtype == DType::I64;
  const std::int64_t most = device::kRouteEntries / std::max<std::int64_t>(walk.choices, 1);
  const std::int64_t few = divide_up(args.tokens, kBlocksOfOne * choice.multiprocessors);
  args.tokens_of_block =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(few, 1, std::max<std::int64_t>(most, 1)));
  return result;
}

Checked<Ok> check(const LaunchChoice& choice, const SlabWalk& walk, const RouteWalk& plain) {
  if (walk.choices > device::kRouteEntries) {
    return no_kernel(choice, "routes of so many choices of a token");
  }
  if (plain.args.experts > device::kRouteMostExperts) {
    return no_kernel(choice, "routes to so many experts");
  }
  if (plain.args.tokens * walk.choices > std::numeric_limits<std::int32_t>::max()) {
    return no_kernel(choice, "routes of so many tokens");
  }
  if (!plain.uniform) return no_kernel(choice, "rows of one route in several types");
  return Ok{};
}

// The loops over a row, for operands of these element sizes; the last goes along the row.
Loops<2> loops_over(const actions::Rows& rows, std::int64_t size, std::int64_t from_size) {
  Loops<2> loops;
  for (std::size_t at = 0; at < rows.loops().size(); ++at) {
    loops.push_back({.length = rows.loops()[at],
                     .bytes = {rows.strides(0)[at] * size, rows.strides(1)[at] * from_size}});
  }
  loops.push_back({.length = rows.length(), .bytes = {size, from_size}});
  return loops;
}

// Sets loops with `elements` elements per iteration. Requires: they divide a row. Errors: G075.
Checked<Ok> set_nest(const LaunchChoice& choice, Loops<2> loops, std::int64_t elements,
                     device::RouteArgs& args) {
  loops.back().length /= elements;
  for (std::int64_t& bytes : loops.back().bytes) bytes *= elements;
  loops = joined(std::move(loops));
  constexpr auto kLimit = static_cast<std::size_t>(device::kMaxLoops + 1);
  if (loops.size() > kLimit) return too_many_loops(choice, loops.size(), kLimit);
  args.nest = nest_of(std::span<const actions::Loop<2>>(loops));
  args.turns = turns_of(std::span<const actions::Loop<2>>(loops));
  return Ok{};
}

std::uint64_t bits_of(const Loops<2>& loops, std::size_t operand) {
  std::uint64_t bits = 0;
  for (std::size_t at = 0; at + 1 < loops.size(); ++at) {
    bits |= static_cast<std::uint64_t>(loops[at].bytes[operand]);
  }
  return bits;
}

PlainLaunch launch_of(PlainKernel kernel, bool wide, RouteWalk walk) {
  const std::int64_t blocks = divide_up(walk.args.tokens, walk.args.tokens_of_block);
  return {.kernel = kernel,
          .wide = wide,
          .blocks = as_grid(blocks),
          .args = walk.args,
          .table = std::move(walk.table)};
}

}  // namespace

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::GatherRows& gather) {
  RouteWalk walk = walk_of(choice, gather.walk);
  HP_REQUIRE_OK(check(choice, gather.walk, walk));
  walk.args.pads = gather.pads;
  const std::int64_t size = size_in_bytes(walk.slots.dtype);
  const std::int64_t from_size = size_in_bytes(walk.rows.dtype);
  const Loops<2> loops = loops_over(gather.features, size, from_size);
  std::int64_t elements = 1;
  if (walk.slots.dtype == walk.rows.dtype || !walk.rows.any) {
    const std::uint64_t bits = walk.slots.bits | walk.rows.bits | bits_of(loops, 0) |
                               bits_of(loops, 1) | 16 |
                               static_cast<std::uint64_t>(gather.features.length() * size);
    walk.args.word_bytes = std::int32_t{1} << std::countr_zero(bits);
    if (walk.args.word_bytes < size) walk.args.word_bytes = static_cast<std::int32_t>(size);
    elements = walk.args.word_bytes / size;
  } else {
    const auto to = number_of(walk.slots.dtype);
    const auto from = number_of(walk.rows.dtype);
    if (!to || !from) return no_kernel(choice, "rows whose numbers are converted on their way");
    walk.args.slot_number = *to;
    walk.args.row_number = *from;
  }
  HP_REQUIRE_OK(set_nest(choice, loops, elements, walk.args));
  return LaunchSpecs{launch_of(PlainKernel::GatherRows, false, std::move(walk))};
}

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::CombineRows& combine) {
  RouteWalk walk = walk_of(choice, combine.walk);
  HP_REQUIRE_OK(check(choice, combine.walk, walk));
  if (!walk.rows.any) return LaunchSpecs{};  // no sums to store
  const DType sums = walk.rows.dtype;
  const auto slots = number_of(walk.slots.any ? walk.slots.dtype : sums);
  const auto weights = number_of(walk.weight_dtype);
  const auto number = number_of(sums);
  // A sum that is not carried on is rounded once, whatever its type. A carried one must be a state,
  // in f32 or f64.
  const bool is_state = sums == DType::F32 || sums == DType::F64;
  const bool carries = std::ranges::any_of(combine.walk.runs, &TokenRun::accumulate);
  if (!number || (!is_state && carries) || !slots || !weights) {
    return no_kernel(choice, "sums of `" + std::string(print(sums)) + "` over choices");
  }
  walk.args.row_number = *number;
  walk.args.slot_number = *slots;
  walk.args.weight_number = *weights;
  const bool wide = sums == DType::F64;
  const std::int64_t width = device::map_width(wide);
  const std::int64_t size = size_in_bytes(sums);
  const std::int64_t from_size = walk.slots.any ? size_in_bytes(walk.slots.dtype) : size;
  const Loops<2> loops = loops_over(combine.features, size, from_size);
  const auto is_aligned = [&](std::uint64_t bits, std::int64_t bytes) {
    return bits % static_cast<std::uint64_t>(std::min<std::int64_t>(16, bytes)) == 0;
  };
  walk.args.vectors = combine.features.length() % width == 0 &&
                      is_aligned(walk.rows.bits | bits_of(loops, 0), width * size) &&
                      is_aligned(walk.slots.bits | bits_of(loops, 1), width * from_size);
  HP_REQUIRE_OK(set_nest(choice, loops, walk.args.vectors ? width : 1, walk.args));
  return LaunchSpecs{launch_of(PlainKernel::CombineRows, wide, std::move(walk))};
}

Checked<LaunchSpecs> plan(const LaunchChoice&, const actions::LimitChoices& limit) {
  device::LimitArgs args{};
  args.wanted = {.data = limit.wanted,
                 .token_stride = limit.wanted_stride,
                 .choice_stride = limit.wanted_choice_stride};
  args.kept = limit.kept;
  args.kept_token_stride = limit.kept_stride;
  args.kept_choice_stride = limit.kept_choice_stride;
  args.first = limit.first;
  args.tokens = limit.tokens;
  args.choices = limit.choices;
  args.experts = limit.experts;
  args.capacity = limit.capacity;
  args.wanted_wide = limit.wanted_dtype == DType::I64;
  args.kept_wide = limit.kept_dtype == DType::I64;
  if (args.tokens <= 0 || args.choices <= 0) return LaunchSpecs{};
  return LaunchSpecs{PlainLaunch{.kernel = PlainKernel::LimitChoices,
                                 .wide = false,
                                 .blocks = as_grid(limit.experts + 1),
                                 .args = args}};
}

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::ChooseExperts& choose) {
  const auto logits = number_of(choose.logit_dtype);
  const auto weights = number_of(choose.weight_dtype);
  if (!logits || !weights) {
    return no_kernel(choice, "logits of `" + std::string(print(choose.logit_dtype)) + "`");
  }
  if (choose.tokens <= 0) return LaunchSpecs{};
  device::ChooseArgs args{};
  args.tokens = choose.tokens;
  args.experts = choose.experts;
  args.choices = choose.choices;
  args.logits = choose.logits;
  args.logit_stride = choose.logit_stride;
  args.expert_stride = choose.expert_stride;
  args.index = choose.index;
  args.index_stride = choose.index_stride;
  args.index_choice_stride = choose.index_choice_stride;
  args.weights = choose.weights;
  args.weight_stride = choose.weight_stride;
  args.weight_choice_stride = choose.weight_choice_stride;
  args.logit_number = *logits;
  args.weight_number = *weights;
  args.wide_index = choose.index_dtype == DType::I64;
  const std::int64_t blocks = divide_up(choose.tokens, device::kRouteThreads / 32);
  return LaunchSpecs{PlainLaunch{.kernel = PlainKernel::ChooseExperts,
                                 .wide = false,
                                 .blocks = few_blocks(choice, blocks),
                                 .args = args}};
}

}  // namespace harpe::cuda
