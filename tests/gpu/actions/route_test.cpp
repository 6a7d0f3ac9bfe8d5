#include <array>
#include <numeric>

#include "tests/gpu/actions/on_gpu.h"

namespace harpe::testing_support {
namespace route_test {

using Routes = OnGpu;
using actions::Rows;

constexpr std::array kTypes = {DType::BF16, DType::F16, DType::F32, DType::F64};

void put_index(Arena& arena, std::int64_t at, DType dtype, std::int64_t entry, std::int64_t value) {
  std::byte* const place = arena.bytes().data() + at + entry * size_in_bytes(dtype);
  if (dtype == DType::I64) {
    *reinterpret_cast<std::int64_t*>(place) = value;
  } else {
    *reinterpret_cast<std::int32_t*>(place) = static_cast<std::int32_t>(value);
  }
}

// [token][choice]: distinct experts per token; some choices are absent.
std::int64_t add_choices(Arena& arena, DType dtype, std::int64_t tokens, std::int64_t choices,
                         std::int64_t experts) {
  const std::int64_t at = arena.add(dtype, tokens * choices);
  std::vector<std::int64_t> all(static_cast<std::size_t>(experts));
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t token = 0; token < tokens; ++token) {
    std::ranges::shuffle(all, arena.random());
    for (std::int64_t choice = 0; choice < choices; ++choice) {
      const bool none = arena.draw(0, 9) == 0;
      put_index(arena, at, dtype, token * choices + choice,
                none ? -1 : all[static_cast<std::size_t>(choice)]);
    }
  }
  return at;
}

TEST_F(Routes, are_chosen) {
  for (unsigned seed = 0; seed < 48; ++seed) {
    Arena arena(seed);
    const DType dtype = kTypes[seed % 4];
    const DType index_dtype = seed % 3 == 0 ? DType::I64 : DType::I32;
    const std::int64_t tokens = arena.draw(1, 200);
    const std::int64_t experts = seed % 6 == 0 ? 512 : arena.draw(1, 70);
    const std::int64_t choices = arena.draw(1, std::min<std::int64_t>(experts, 16));
    const DType weight_dtype = kTypes[seed / 4 % 4];
    const std::int64_t logits = arena.add(dtype, tokens * experts);
    for (std::int64_t i = 0; i < tokens * experts; ++i) {  // ties, and NaN
      const std::int64_t size = size_in_bytes(dtype);
      std::byte* const place = arena.bytes().data() + logits + i * size;
      if (arena.draw(0, 3) == 0) std::copy_n(arena.bytes().data() + logits, size, place);
      if (arena.draw(0, 99) == 0) std::fill_n(place, size, std::byte{0xff});
    }
    const std::int64_t index = arena.add(index_dtype, tokens * choices);
    // Sums of few exponentials in f64, rounded once.
    const double bound = 2 * unit_roundoff(weight_dtype) + 0x1p-46;
    const std::int64_t weights = arena.add(weight_dtype, tokens * choices, bound);
    check(arena, [&](std::byte* base) {
      return actions::ChooseExperts{.tokens = tokens,
                                    .experts = experts,
                                    .choices = choices,
                                    .logits = base + logits,
                                    .logit_dtype = dtype,
                                    .logit_stride = experts * size_in_bytes(dtype),
                                    .expert_stride = size_in_bytes(dtype),
                                    .index = base + index,
                                    .index_dtype = index_dtype,
                                    .index_stride = choices * size_in_bytes(index_dtype),
                                    .index_choice_stride = size_in_bytes(index_dtype),
                                    .weights = base + weights,
                                    .weight_dtype = weight_dtype,
                                    .weight_stride = choices * size_in_bytes(weight_dtype),
                                    .weight_choice_stride = size_in_bytes(weight_dtype)};
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_F(Routes, are_limited) {
  for (unsigned seed = 0; seed < 32; ++seed) {
    Arena arena(seed);
    const DType wanted_dtype = seed % 2 == 0 ? DType::I32 : DType::I64;
    const DType kept_dtype = seed % 3 == 0 ? DType::I64 : DType::I32;
    const std::int64_t first = arena.draw(0, 300);
    const std::int64_t tokens = arena.draw(1, 300);
    const std::int64_t experts = arena.draw(1, 40);
    const std::int64_t choices = arena.draw(1, std::min<std::int64_t>(experts, 8));
    const std::int64_t capacity = arena.draw(0, 60);
    const std::int64_t wanted = add_choices(arena, wanted_dtype, first + tokens, choices, experts);
    const std::int64_t kept = arena.add(kept_dtype, tokens * choices);
    check(arena, [&](std::byte* base) {
      return actions::LimitChoices{
          .wanted = base + wanted,
          .wanted_stride = choices * size_in_bytes(wanted_dtype),
          .wanted_choice_stride = size_in_bytes(wanted_dtype),
          .kept = base + kept,
          .kept_stride = choices * size_in_bytes(kept_dtype),
          .kept_choice_stride = size_in_bytes(kept_dtype),
          .first = first,
          .tokens = tokens,
          .choices = choices,
          .experts = experts,
          .capacity = capacity,
          .wanted_dtype = wanted_dtype,
          .kept_dtype = kept_dtype,
          .taken = std::make_unique<std::int64_t[]>(static_cast<std::size_t>(experts))};
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// A slab of two runs of tokens. The slots of each expert lie in two blocks; the last expert has no
// slots here.
struct Slab {
  std::int64_t tokens, choices, experts, first_expert, features, pitch;
  std::int64_t split;  // tokens of the first run and slots of the first block
  DType index_dtype, row_dtype, slot_dtype, weight_dtype;
  std::int64_t index, rows, slots, used, weights;
  std::vector<std::int32_t>& counts;

  [[nodiscard]] actions::TokenRun run(std::byte* base, int number) const {
    const std::int64_t first = number == 0 ? 0 : split;
    actions::TokenRun result;
    result.tokens = number == 0 ? split : tokens - split;
    result.index_stride = choices * size_in_bytes(index_dtype);
    result.choice_stride = size_in_bytes(index_dtype);
    result.index = base + index + first * result.index_stride;
    result.row_stride = pitch * size_in_bytes(row_dtype);
    result.rows = base + rows + first * result.row_stride;
    result.row_dtype = row_dtype;
    return result;
  }
  [[nodiscard]] actions::SlabWalk walk(std::byte* base) const {
    actions::SlabWalk result;
    result.runs = {run(base, 0), run(base, 1)};
    result.choices = choices;
    result.index_dtype = index_dtype;
    result.first_expert = first_expert;
    result.slots.resize(static_cast<std::size_t>(experts));
    result.counts = counts.data();
    const std::int64_t stride = pitch * size_in_bytes(slot_dtype);
    for (std::int64_t expert = 0; expert + 1 < experts; ++expert) {
      for (const std::int64_t part : {0, 1}) {
        const std::int64_t before = part == 0 ? 0 : split;
        result.slots[static_cast<std::size_t>(expert)].push_back(
            {.before = before,
             .slots = part == 0 ? split : tokens - split,
             .data = base + slots + (expert * tokens + before) * stride,
             .stride = stride,
             .dtype = slot_dtype,
             .used = reinterpret_cast<std::int32_t*>(base + used) + 2 * expert + part});
      }
    }
    return result;
  }
  // A row's features in two loops, with a gap in between if `gap`.
  [[nodiscard]] Rows walk_of_row(bool gap) const {
    const std::vector<std::int64_t> strides[] = {{gap ? features / 2 + 8 : features / 2, 1},
                                                 {features / 2, 1}};
    return Rows(std::vector<std::int64_t>{2, features / 2}, strides);
  }
};

Slab draw_slab(Arena& arena, unsigned seed, std::vector<std::int32_t>& counts) {
  Slab slab{.tokens = arena.draw(2, seed % 5 == 0 ? 3000 : 200),
            .choices = 1,
            .experts = arena.draw(2, 40),
            .first_expert = arena.draw(0, 3),
            .features = 2 * (seed % 2 == 0 ? 32 : arena.draw(1, 20)),
            .pitch = 0,
            .split = 0,
            .index_dtype = seed % 3 == 0 ? DType::I64 : DType::I32,
            .row_dtype = kTypes[seed % 4],
            .slot_dtype = seed % 7 == 0 ? kTypes[seed / 4 % 4] : kTypes[seed % 4],
            .weight_dtype = kTypes[seed / 3 % 4],
            .index = 0,
            .rows = 0,
            .slots = 0,
            .used = 0,
            .weights = 0,
            .counts = counts};
  counts.resize(static_cast<std::size_t>(slab.experts));
  slab.choices = arena.draw(1, std::min<std::int64_t>(slab.experts, 16));
  slab.pitch = slab.features + 8;
  slab.split = arena.draw(1, slab.tokens - 1);
  slab.index = add_choices(arena, slab.index_dtype, slab.tokens, slab.choices,
                           slab.experts + slab.first_expert + 2);
  slab.used = arena.add(DType::I32, 2 * slab.experts);
  return slab;
}

TEST_F(Routes, gather_rows) {
  for (unsigned seed = 0; seed < 56; ++seed) {
    Arena arena(seed);
    std::vector<std::int32_t> counts;
    Slab slab = draw_slab(arena, seed, counts);
    slab.rows = arena.add(slab.row_dtype, slab.tokens * slab.pitch);
    slab.slots = arena.add(slab.slot_dtype, slab.experts * slab.tokens * slab.pitch);
    check(arena, [&](std::byte* base) {
      return actions::GatherRows{.walk = slab.walk(base),
                                 .features = slab.walk_of_row(seed % 2 == 0),
                                 .pads = seed % 4 == 1};
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_F(Routes, combine_rows) {
  for (unsigned seed = 0; seed < 56; ++seed) {
    Arena arena(seed);
    std::vector<std::int32_t> counts;
    Slab slab = draw_slab(arena, seed, counts);
    slab.row_dtype = seed % 4 == 3 ? DType::F64 : DType::F32;
    slab.slot_dtype = kTypes[seed % 4];
    // One product per choice, of numbers up to 1, each possibly fused with its addition.
    const auto terms = static_cast<double>(slab.choices + 1);
    const double bound = 2 * terms * terms * unit_roundoff(slab.row_dtype);
    slab.rows = arena.add(slab.row_dtype, slab.tokens * slab.pitch, bound);
    slab.slots = arena.add(slab.slot_dtype, slab.experts * slab.tokens * slab.pitch);
    slab.weights = arena.add(slab.weight_dtype, slab.tokens * slab.choices);
    check(arena, [&](std::byte* base) {
      actions::CombineRows combine{.walk = slab.walk(base),
                                   .features = slab.walk_of_row(seed % 2 == 0)};
      std::int64_t first = 0;
      for (actions::TokenRun& run : combine.walk.runs) {
        run.weight_dtype = slab.weight_dtype;
        run.weight_choice_stride = size_in_bytes(slab.weight_dtype);
        run.weight_stride = slab.choices * run.weight_choice_stride;
        run.weights = base + slab.weights + first * run.weight_stride;
        run.accumulate = seed % 3 == 0;
        first += run.tokens;
      }
      if (seed % 9 == 4) combine.walk.runs[0].rows = nullptr;  // the run is only counted
      return combine;
    });
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace route_test
}  // namespace harpe::testing_support
