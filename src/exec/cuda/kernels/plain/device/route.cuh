#pragma once

#include "exec/cuda/kernels/plain/device/choices.cuh"

// Moves rows along a route. A thread block has some tokens of the slab. It counts the choices of
// all tokens before them, which gives the slots of its own choices, and then moves the rows. Slots
// and sums have a fixed order.
namespace harpe::device {

// The shared memory of a thread block.
struct RouteTiles {
  std::int32_t counts[kRouteMostExperts];  // choices of each expert so far
  std::int32_t experts[kRouteEntries];     // of the block's choices; -1: not in this walk
  std::int32_t slots[kRouteEntries];
  void* places[kRouteEntries];  // address of the slot; null: not here
  double weights[kRouteEntries];
  const RouteRun* runs[kRouteEntries];  // the run of each of the block's tokens
};

HP_DEVICE const RouteRun* runs_of(const RouteArgs& args) {
  return static_cast<const RouteRun*>(args.table);
}
HP_DEVICE const RoutePlace* places_of(const RouteArgs& args) {
  return static_cast<const RoutePlace*>(moved(args.table, args.places_at));
}
HP_DEVICE const std::int32_t* first_places_of(const RouteArgs& args) {
  return static_cast<const std::int32_t*>(moved(args.table, args.first_places_at));
}

// The index of the chosen expert in the walk; -1: the walk does not have it.
HP_DEVICE std::int32_t expert_of(const RouteArgs& args, const RouteRun& run, std::int64_t token,
                                 std::int64_t choice) {
  const std::int64_t expert =
      read_integer(entry_of(run.index, token, choice), args.wide_index) - args.first_expert;
  return expert >= 0 && expert < args.experts ? static_cast<std::int32_t>(expert) : -1;
}

// Counts the choices of tokens [begin, end). By the whole block.
HP_DEVICE void count_choices(const RouteArgs& args, std::int64_t begin, std::int64_t end,
                             RouteTiles& tiles) {
  const auto choices = static_cast<std::uint32_t>(args.choices);
#pragma unroll 1
  for (int number = 0; number < args.runs; ++number) {
    const RouteRun& run = runs_of(args)[number];
    const std::int64_t first = begin > run.first ? begin - run.first : 0;
    const std::int64_t last = end - run.first < run.tokens ? end - run.first : run.tokens;
    if (first >= last) continue;
    const auto entries = static_cast<std::uint32_t>(last - first) * choices;
    for (std::uint32_t at = threadIdx.x; at < entries; at += kRouteThreads) {
      const std::uint32_t token = at / choices;
      const std::int32_t expert = expert_of(args, run, first + token, at - token * choices);
      if (expert >= 0) atomicAdd(&tiles.counts[expert], 1);
    }
  }
  __syncthreads();
}

HP_DEVICE const RouteRun* find_run(const RouteArgs& args, std::int64_t token) {
  const RouteRun* const runs = runs_of(args);
  int low = 0;
  int high = args.runs - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (runs[middle].first <= token) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return &runs[low];
}

// Loads the choices of tokens [begin, end) into shared memory. By the whole block.
HP_DEVICE void load_choices(const RouteArgs& args, std::int64_t begin, std::int64_t end,
                            RouteTiles& tiles) {
  const int entries = static_cast<int>(end - begin) * args.choices;
  for (int at = static_cast<int>(threadIdx.x); at < entries; at += kRouteThreads) {
    const int token = at / args.choices;
    const int choice = at - token * args.choices;
    const RouteRun* const run = find_run(args, begin + token);
    const std::int64_t of_run = begin + token - run->first;
    tiles.experts[at] = expert_of(args, *run, of_run, choice);
    if (choice == 0) tiles.runs[token] = run;
    if (run->weights.data == nullptr) continue;
    tiles.weights[at] =
        load_number<double>(entry_of(run->weights, of_run, choice), args.weight_number, 0);
  }
  __syncthreads();
}

// Gives each choice the next slot of its expert, in order. The first warp does it; all threads
// meet at a barrier afterwards.
HP_DEVICE void take_slots(int entries, RouteTiles& tiles) {
  if (threadIdx.x < 32) {
    const std::uint32_t before = (1U << threadIdx.x) - 1;
#pragma unroll 1
    for (int base = 0; base < entries; base += 32) {
      const int at = base + static_cast<int>(threadIdx.x);
      const std::int32_t expert = at < entries ? tiles.experts[at] : -1;
      const std::uint32_t same = __match_any_sync(~0U, expert);
      if (expert >= 0) tiles.slots[at] = tiles.counts[expert] + __popc(same & before);
      __syncwarp();
      if (expert >= 0 && (same & before) == 0) tiles.counts[expert] += __popc(same);
      __syncwarp();
    }
  }
  __syncthreads();
}

// Finds the address of each slot.
HP_DEVICE void find_places(const RouteArgs& args, int entries, RouteTiles& tiles) {
  for (int at = static_cast<int>(threadIdx.x); at < entries; at += kRouteThreads) {
    tiles.places[at] = nullptr;
    const std::int32_t expert = tiles.experts[at];
    if (expert < 0) continue;
    for (int i = first_places_of(args)[expert]; i < first_places_of(args)[expert + 1]; ++i) {
      const RoutePlace& place = places_of(args)[i];
      const std::int64_t slot = tiles.slots[at] - place.before;
      if (slot < 0 || slot >= place.slots) continue;
      tiles.places[at] = moved(place.data, slot * place.stride);
    }
  }
  __syncthreads();
}

struct TokenRange {
  std::int64_t begin;
  std::int64_t end;
};

// Finds the slots of the block's tokens. By the whole block.
HP_DEVICE TokenRange find_slots(const RouteArgs& args, RouteTiles& tiles) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * args.tokens_of_block;
  const std::int64_t past = begin + args.tokens_of_block;
  const std::int64_t end = past < args.tokens ? past : args.tokens;
  for (int i = static_cast<int>(threadIdx.x); i < args.experts; i += kRouteThreads) {
    tiles.counts[i] = 0;
  }
  __syncthreads();
  count_choices(args, 0, begin, tiles);
  load_choices(args, begin, end, tiles);
  const int entries = static_cast<int>(end - begin) * args.choices;
  take_slots(entries, tiles);
  find_places(args, entries, tiles);
  return {begin, end};
}

// The address of a token's row; null: it has none.
HP_DEVICE void* row_of(const RouteRun& run, std::int64_t token) {
  return run.rows == nullptr ? nullptr : moved(run.rows, (token - run.first) * run.row_stride);
}

HP_DEVICE std::int64_t filled_of(const RoutePlace& place, std::int32_t choices) {
  const std::int64_t filled = choices - place.before;
  return filled < 0 ? 0 : (filled > place.slots ? place.slots : filled);
}

// Calls body(token, offsets) for every iteration over every token's row.
template <class Body>
HP_DEVICE void for_each_turn(const RouteArgs& args, int tokens, const Body& body) {
  const std::int64_t count = tokens * args.turns;
#pragma unroll 1
  for (std::int64_t at = threadIdx.x; at < count; at += kRouteThreads) {
    const auto token = static_cast<int>(at / args.turns);
    std::int64_t offsets[2] = {};
    add_offsets(args.nest, 0, args.nest.count, at - token * args.turns, offsets);
    body(token, offsets);
  }
}

// Copies words, or with kConverts converts numbers.
template <class Word, bool kConverts>
HP_DEVICE void copy_rows(const RouteArgs& args, const TokenRange& tokens, const RouteTiles& tiles) {
  for_each_turn(args, static_cast<int>(tokens.end - tokens.begin),
                [&](int token, const std::int64_t(&offsets)[2]) {
                  void* const row = row_of(*tiles.runs[token], tokens.begin + token);
                  if (row == nullptr) return;
                  const void* const from = moved(row, offsets[1]);
                  Word word{};
                  double number = 0;
                  if constexpr (kConverts) {
                    number = load_number<double>(from, args.row_number, 0);
                  } else {
                    word = *static_cast<const Word*>(from);
                  }
                  for (int choice = 0; choice < args.choices; ++choice) {
                    void* const place = tiles.places[token * args.choices + choice];
                    if (place == nullptr) continue;
                    void* const to = moved(place, offsets[0]);
                    if constexpr (kConverts) {
                      store_number(to, args.slot_number, 0, number);
                    } else {
                      *static_cast<Word*>(to) = word;
                    }
                  }
                });
}

// Stores zeros into the slots that no choice fills; each block takes some slots of every place.
// Requires: all choices of the slab are counted.
template <class Word>
HP_DEVICE void pad_rows(const RouteArgs& args, const RouteTiles& tiles) {
#pragma unroll 1
  for (int expert = 0; expert < args.experts; ++expert) {
    for (int i = first_places_of(args)[expert]; i < first_places_of(args)[expert + 1]; ++i) {
      const RoutePlace& place = places_of(args)[i];
      const std::int64_t filled = filled_of(place, tiles.counts[expert]);
      for (std::int64_t slot = filled + blockIdx.x; slot < place.slots; slot += gridDim.x) {
        void* const row = moved(place.data, slot * place.stride);
        for (std::int64_t at = threadIdx.x; at < args.turns; at += kRouteThreads) {
          std::int64_t offsets[2] = {};
          add_offsets(args.nest, 0, args.nest.count, at, offsets);
          *static_cast<Word*>(moved(row, offsets[0])) = Word{};
        }
      }
    }
  }
}

template <class Word, bool kConverts>
HP_DEVICE void gather_by(const RouteArgs& args, const TokenRange& tokens, RouteTiles& tiles) {
  copy_rows<Word, kConverts>(args, tokens, tiles);
  if (!args.pads) return;
  __syncthreads();
  count_choices(args, tokens.end, args.tokens, tiles);
  pad_rows<Word>(args, tiles);
}

// Stores the number of filled slots of each place, or of all its slots with `pads`. By the thread
// block with the last tokens, which has counted all choices.
HP_DEVICE void say_used(const RouteArgs& args, const RouteTiles& tiles) {
  for (int expert = static_cast<int>(threadIdx.x); expert < args.experts; expert += kRouteThreads) {
    for (int i = first_places_of(args)[expert]; i < first_places_of(args)[expert + 1]; ++i) {
      const RoutePlace& place = places_of(args)[i];
      const std::int64_t used = args.pads ? place.slots : filled_of(place, tiles.counts[expert]);
      *place.used = static_cast<std::int32_t>(used);
    }
  }
}

// slots[expert][slot] = the token's row. The grid covers all tokens.
HP_DEVICE void gather_rows(const RouteArgs& args) {
  __shared__ RouteTiles tiles;
  const TokenRange tokens = find_slots(args, tiles);
  if (blockIdx.x == gridDim.x - 1) say_used(args, tiles);
  switch (args.word_bytes) {
    case 16:
      return gather_by<Words<4>, false>(args, tokens, tiles);
    case 8:
      return gather_by<Words<2>, false>(args, tokens, tiles);
    case 4:
      return gather_by<std::uint32_t, false>(args, tokens, tiles);
    case 2:
      return gather_by<std::uint16_t, false>(args, tokens, tiles);
    case 1:
      return gather_by<std::uint8_t, false>(args, tokens, tiles);
    default:
      break;
  }
  if (bytes_of(args.slot_number) == 2) {
    gather_by<std::uint16_t, true>(args, tokens, tiles);
  } else if (bytes_of(args.slot_number) == 4) {
    gather_by<std::uint32_t, true>(args, tokens, tiles);
  } else {
    gather_by<Words<2>, true>(args, tokens, tiles);
  }
}

template <class Real, int kCount>
HP_DEVICE void load_row(const void* data, Number number, Real (&values)[kCount]) {
  if constexpr (kCount == 1) {
    values[0] = load_number<Real>(data, number, 0);
  } else {
    load_numbers(data, number, values);
  }
}

template <class Real, int kCount>
HP_DEVICE void combine_by(const RouteArgs& args, const TokenRange& tokens,
                          const RouteTiles& tiles) {
  for_each_turn(args, static_cast<int>(tokens.end - tokens.begin),
                [&](int token, const std::int64_t(&offsets)[2]) {
                  const RouteRun& run = *tiles.runs[token];
                  void* const row = row_of(run, tokens.begin + token);
                  if (row == nullptr) return;
                  void* const to = moved(row, offsets[0]);
                  Real sums[kCount] = {};
                  if (run.accumulate) load_row(to, args.row_number, sums);
                  for (int choice = 0; choice < args.choices; ++choice) {
                    const int at = token * args.choices + choice;
                    if (tiles.places[at] == nullptr) continue;
                    Real values[kCount];
                    load_row(moved(static_cast<const void*>(tiles.places[at]), offsets[1]),
                             args.slot_number, values);
                    const auto weight = static_cast<Real>(tiles.weights[at]);
#pragma unroll
                    for (int i = 0; i < kCount; ++i) sums[i] += weight * values[i];
                  }
                  if constexpr (kCount == 1) {
                    store_number(to, args.row_number, 0, sums[0]);
                  } else {
                    store_numbers(to, args.row_number, sums);
                  }
                });
}

// sums[token] += weight x slots[expert][slot] over the token's choices, in order. The grid covers
// all tokens.
template <class Real>
HP_DEVICE void combine_rows(const RouteArgs& args) {
  __shared__ RouteTiles tiles;
  const TokenRange tokens = find_slots(args, tiles);
  if (args.vectors) return combine_by<Real, map_width(sizeof(Real) == 8)>(args, tokens, tiles);
  combine_by<Real, 1>(args, tokens, tiles);
}

}  // namespace harpe::device
