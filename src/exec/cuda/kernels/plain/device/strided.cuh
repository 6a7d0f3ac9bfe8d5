#pragma once

#include "exec/cuda/device/pointwise.cuh"
#include "exec/cuda/device/ragged.cuh"
#include "exec/cuda/kernels/plain/device/plain_args.h"

// Moves and element-wise functions over strided boxes, with grid-stride loops.
namespace harpe::device {

// The iterations that belong to rows in use; the outermost loop runs over rows.
HP_DEVICE std::int64_t used_turns(const UsedRows& used, std::int64_t turns) {
  if (used.rows == nullptr) return turns;
  return used_of(used, used.capacity) * (turns / used.capacity);
}

// Whether 32 bits can number the iterations; divisions are then several times faster.
HP_DEVICE bool is_short(std::int64_t count) { return count < (std::int64_t{1} << 31); }

HP_DEVICE StridedPlace place_of(const MoveArgs& args) {
  if (args.places != nullptr) return args.places[blockIdx.y];
  return {.to = args.to, .a = args.from, .b = nullptr, .used = args.used};
}

HP_DEVICE StridedPlace place_of(const MapArgs& args) {
  if (args.places != nullptr) return args.places[blockIdx.y];
  return {.to = args.to, .a = args.a, .b = args.b, .used = args.used};
}

template <class Word, class Index>
HP_DEVICE void move_words(const MoveArgs& args, const StridedPlace& place) {
  const auto count = static_cast<Index>(used_turns(place.used, args.words));
  const auto step = static_cast<Index>(threads_of_grid());
  Word pattern{};
  if (place.a == nullptr) pattern = *reinterpret_cast<const Word*>(args.pattern);
  for (auto at = static_cast<Index>(thread_of_grid()); at < count; at += step) {
    std::int64_t offsets[2] = {};
    add_offsets(args.nest, 0, args.nest.count, at, offsets);
    Word word = pattern;
    if (place.a != nullptr) word = *static_cast<const Word*>(moved(place.a, offsets[1]));
    *static_cast<Word*>(moved(place.to, offsets[0])) = word;
  }
}

template <class Index>
HP_DEVICE void move_by(const MoveArgs& args, const StridedPlace& place) {
  switch (args.word_bytes) {
    case 16:
      return move_words<Words<4>, Index>(args, place);
    case 8:
      return move_words<Words<2>, Index>(args, place);
    case 4:
      return move_words<std::uint32_t, Index>(args, place);
    case 2:
      return move_words<std::uint16_t, Index>(args, place);
    default:
      return move_words<std::uint8_t, Index>(args, place);
  }
}

HP_DEVICE void move(const MoveArgs& args) {
  const StridedPlace place = place_of(args);
  note_used(place.used);
  if (is_short(args.words)) return move_by<std::uint32_t>(args, place);
  move_by<std::uint64_t>(args, place);
}

// a[i] = function(a[i], b[i])
template <class Real, int kCount, class Function>
HP_DEVICE void each(Real (&a)[kCount], const Real (&b)[kCount], const Function& function) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) a[i] = function(a[i], b[i]);
}

// For Accumulate `b` holds the sums so far.
template <class Real, int kCount>
HP_DEVICE void evaluate(const MapArgs& args, Real (&a)[kCount], const Real (&b)[kCount]) {
  switch (args.function) {
    case MapFunction::Convert:
      return;
    case MapFunction::Accumulate:
    case MapFunction::Add:
      return each(a, b, [](Real x, Real y) { return x + y; });
    case MapFunction::Mul:
      return each(a, b, [](Real x, Real y) { return x * y; });
    case MapFunction::Relu:
      return each(a, b, [](Real x, Real) { return x < 0 ? Real(0) : x; });
    case MapFunction::Silu:
      return each(a, b, [](Real x, Real) { return silu(x); });
    case MapFunction::SiluMul:
      return each(a, b, [](Real x, Real y) { return silu(x) * y; });
    case MapFunction::Gelu:
      return each(a, b, [](Real x, Real) { return gelu(x); });
    case MapFunction::RmsScale: {
      const auto features = static_cast<Real>(args.features);
      const auto epsilon = static_cast<Real>(args.epsilon);
      return each(a, b, [&](Real x, Real y) { return x / square_root(y / features + epsilon); });
    }
  }
}

template <class Real, int kCount>
HP_DEVICE void load_operand(const void* data, Number number, bool dense, Real (&values)[kCount]) {
  if (dense) return load_numbers(data, number, values);
  const Real value = load_number<Real>(data, number, 0);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = value;
}

template <class Real, int kCount, class Index>
HP_DEVICE void map_turns(const MapArgs& args, const StridedPlace& place) {
  const auto count = static_cast<Index>(used_turns(place.used, args.turns));
  const auto step = static_cast<Index>(threads_of_grid());
  for (auto at = static_cast<Index>(thread_of_grid()); at < count; at += step) {
    std::int64_t offsets[3] = {};
    add_offsets(args.nest, 0, args.nest.count, at, offsets);
    void* const to = moved(place.to, offsets[0]);
    Real a[kCount];
    Real b[kCount] = {};
    if constexpr (kCount == 1) {
      a[0] = load_number<Real>(moved(place.a, offsets[1]), args.a_number, 0);
      if (place.b != nullptr) {
        b[0] = load_number<Real>(moved(place.b, offsets[2]), args.b_number, 0);
      }
      evaluate(args, a, b);
      store_number(to, args.to_number, 0, a[0]);
    } else {
      load_operand(moved(place.a, offsets[1]), args.a_number, args.a_dense, a);
      if (place.b != nullptr) {
        load_operand(moved(place.b, offsets[2]), args.b_number, args.b_dense, b);
      }
      evaluate(args, a, b);
      store_numbers(to, args.to_number, a);
    }
  }
}

// Real: the type of the computation.
template <class Real>
HP_DEVICE void map(const MapArgs& args) {
  const StridedPlace place = place_of(args);
  note_used(place.used);
  constexpr int kWidth = map_width(sizeof(Real) == 8);
  if (!is_short(args.turns)) return map_turns<Real, 1, std::uint64_t>(args, place);
  if (args.vectors) return map_turns<Real, kWidth, std::uint32_t>(args, place);
  map_turns<Real, 1, std::uint32_t>(args, place);
}

}  // namespace harpe::device
