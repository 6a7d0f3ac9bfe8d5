#include <bit>
#include <cstring>

#include "exec/cuda/kernels/loop_nests.h"
#include "exec/cuda/kernels/plain/plain_plans.h"
#include "ir/rounding.h"

namespace harpe::cuda {
namespace {

using device::MapFunction;
using device::Number;

// The widest word, up to 16 bytes, that divides every address, step and row.
template <std::size_t kOperands>
std::int64_t word_of(std::int64_t row_bytes, const Loops<kOperands>& loops,
                     const std::array<DeviceAddress, kOperands>& addresses) {
  auto bits = static_cast<std::uint64_t>(row_bytes) | 16;
  for (const DeviceAddress address : addresses) bits |= address;
  for (const actions::Loop<kOperands>& loop : loops) {
    for (const std::int64_t bytes : loop.bytes) bits |= static_cast<std::uint64_t>(bytes);
  }
  return std::int64_t{1} << std::countr_zero(bits);
}

// The outermost loop of a launch runs over rows. So if only some rows are in use, that loop must be
// inside one launch. Errors: G075.
template <std::size_t kOperands>
Checked<Ok> check_used(const LaunchChoice& choice, const device::UsedRows& used,
                       const Loops<kOperands>& loops) {
  constexpr auto kLimit = static_cast<std::size_t>(device::kMaxLoops + 1);
  if (used.rows == nullptr || loops.size() <= kLimit) return Ok{};
  return too_many_loops(choice, loops.size(), kLimit);
}

template <std::size_t kOperands>
device::UsedRows used_rows(const actions::SlotRows<kOperands>& slots) {
  return cuda::used_rows(slots.used, slots.result, slots.capacity);
}

struct StridedMove {
  void* to = nullptr;
  const void* from = nullptr;  // null: the pattern
  std::array<std::uint32_t, 4> pattern{};
  std::int64_t row_bytes = 0;
  Loops<2> loops;
  device::UsedRows used{};
};

Checked<LaunchSpecs> plan_move(const LaunchChoice& choice, const StridedMove& move) {
  LaunchSpecs launches;
  const std::int64_t word =
      word_of<2>(move.row_bytes, move.loops, {address_of(move.to), address_of(move.from)});
  Loops<2> loops = move.loops;
  loops.push_back({.length = move.row_bytes / word, .bytes = {word, word}});
  loops = joined(std::move(loops));
  if (turns_of(std::span<const actions::Loop<2>>(loops)) == 0) return launches;
  HP_REQUIRE_OK(check_used(choice, move.used, loops));
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops + 1, [&](const auto& offsets, const auto& inner) {
        device::MoveArgs args{};
        args.to = moved(move.to, offsets[0]);
        args.from = move.from == nullptr ? nullptr : moved(move.from, offsets[1]);
        args.nest = nest_of(inner);
        args.used = move.used;
        args.words = turns_of(inner);
        args.word_bytes = static_cast<std::int32_t>(word);
        std::ranges::copy(move.pattern, args.pattern);
        launches.emplace_back(PlainLaunch{
            .kernel = PlainKernel::Move,
            .wide = false,
            .blocks = few_blocks(choice, divide_up(args.words, device::kStridedThreads)),
            .args = args});
      }));
  return launches;
}

// An operand of a function; b may be absent (data is null).
struct MapOperand {
  void* data = nullptr;
  DType dtype = DType::F32;
  std::int64_t stride = 1;  // elements, along the row
};

struct Map {
  MapFunction function = MapFunction::Convert;
  bool wide = false;
  std::array<MapOperand, 3> operands;  // to, a, b
  std::int64_t length = 0;             // of a row
  Loops<3> loops;
  device::UsedRows used{};
  double features = 1;
  double epsilon = 0;
};

// Whether rows can be processed `width` elements at a time.
bool fits_vectors(const Map& map, std::int64_t width) {
  if (map.length % width != 0) return false;
  for (std::size_t i = 0; i < map.operands.size(); ++i) {
    const MapOperand& operand = map.operands[i];
    if (operand.data == nullptr || (i > 0 && operand.stride == 0)) continue;
    if (operand.stride != 1) return false;
    const auto align = std::min<std::int64_t>(16, width * size_in_bytes(operand.dtype));
    if (address_of(operand.data) % static_cast<DeviceAddress>(align) != 0) return false;
    for (const actions::Loop<3>& loop : map.loops) {
      if (loop.bytes[i] % align != 0) return false;
    }
  }
  return true;
}

// Requires: the types are numbers.
device::MapArgs map_args(const Map& map, bool vectors) {
  const auto& [to, a, b] = map.operands;
  device::MapArgs args{};
  args.to_number = *number_of(to.dtype);
  args.a_number = *number_of(a.dtype);
  args.b_number = b.data == nullptr ? Number::F32 : *number_of(b.dtype);
  args.function = map.function;
  args.vectors = vectors;
  args.a_dense = a.stride == 1;
  args.b_dense = b.stride == 1;
  args.features = map.features;
  args.used = map.used;
  args.epsilon = map.epsilon;
  return args;
}

Checked<LaunchSpecs> plan_map(const LaunchChoice& choice, const Map& map) {
  LaunchSpecs launches;
  for (const MapOperand& operand : map.operands) {
    if (operand.data != nullptr && !number_of(operand.dtype)) {
      return no_kernel(choice, "elements of `" + std::string(print(operand.dtype)) + "`");
    }
  }
  const std::int64_t elements = map.length * turns_of(std::span<const actions::Loop<3>>(map.loops));
  if (elements == 0) return launches;
  std::int64_t width = device::map_width(map.wide);
  // With more iterations than 32 bits can number, the kernel processes single elements.
  if (!fits_vectors(map, width) || elements / width >> 31 != 0) width = 1;
  actions::Loop<3> row{.length = map.length / width, .bytes = {}};
  for (std::size_t i = 0; i < 3; ++i) {
    const MapOperand& operand = map.operands[i];
    row.bytes[i] = operand.stride * width * size_in_bytes(operand.dtype);
  }
  Loops<3> loops = map.loops;
  loops.push_back(row);
  loops = joined(std::move(loops));
  HP_REQUIRE_OK(check_used(choice, map.used, loops));
  device::MapArgs args = map_args(map, width > 1);
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops + 1, [&](const auto& offsets, const auto& inner) {
        args.to = moved(map.operands[0].data, offsets[0]);
        args.a = moved(map.operands[1].data, offsets[1]);
        void* const b = map.operands[2].data;
        args.b = b == nullptr ? nullptr : moved(b, offsets[2]);
        args.nest = nest_of(inner);
        args.turns = turns_of(inner);
        launches.emplace_back(PlainLaunch{
            .kernel = PlainKernel::Map,
            .wide = map.wide,
            .blocks = few_blocks(choice, divide_up(args.turns, device::kStridedThreads)),
            .args = args});
      }));
  return launches;
}

// A map of two views with operands to, from, and `to` again for sums.
Map map_of(const actions::View& to, const actions::View& from, const actions::Rows& rows,
           const actions::SlotRows<2>& slots) {
  Map map;
  map.operands[0] = {.data = to.data, .dtype = to.dtype};
  map.operands[1] = {.data = from.data, .dtype = from.dtype};
  map.length = rows.length();
  map.used = used_rows(slots);
  const Loops<2> loops =
      loops_around<2>(rows, &slots, {size_in_bytes(to.dtype), size_in_bytes(from.dtype)});
  for (const actions::Loop<2>& loop : loops) {
    map.loops.push_back(
        {.length = loop.length, .bytes = {loop.bytes[0], loop.bytes[1], loop.bytes[0]}});
  }
  return map;
}

// The number's bits, repeated; none for integers.
std::optional<std::array<std::uint32_t, 4>> pattern_of(DType dtype, double value) {
  std::array<std::uint32_t, 4> pattern{};
  const auto repeat = [&](auto bits) {
    for (std::size_t at = 0; at < sizeof pattern; at += sizeof bits) {
      std::memcpy(reinterpret_cast<std::byte*>(pattern.data()) + at, &bits, sizeof bits);
    }
    return pattern;
  };
  switch (dtype) {
    case DType::F64:
      return repeat(value);
    case DType::F32:
      return repeat(static_cast<float>(value));
    case DType::F16:
      return repeat(narrow_f16(round_to_odd(value)));
    case DType::BF16:
      return repeat(narrow_bf16(round_to_odd(value)));
    case DType::F8E4M3:
      return repeat(narrow_f8(kE4M3, round_to_odd(value)));
    case DType::F8E5M2:
      return repeat(narrow_f8(kE5M2, round_to_odd(value)));
    default:
      return std::nullopt;
  }
}

MapFunction function_of(Pointwise function) {
  switch (function) {
    case Pointwise::Silu:
      return MapFunction::Silu;
    case Pointwise::Relu:
      return MapFunction::Relu;
    case Pointwise::Gelu:
      return MapFunction::Gelu;
    case Pointwise::Add:
      return MapFunction::Add;
    case Pointwise::Mul:
      return MapFunction::Mul;
    case Pointwise::SiluMul:
      return MapFunction::SiluMul;
    case Pointwise::RmsScale:
      return MapFunction::RmsScale;
  }
  return MapFunction::Convert;
}

}  // namespace

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Assign& assign) {
  if (assign.rows.count() == 0) return LaunchSpecs{};
  if (assign.to.dtype != assign.from.dtype) {
    Map map = map_of(assign.to, assign.from, assign.rows, assign.slots);
    map.wide = assign.from.dtype == DType::F64;
    return plan_map(choice, map);
  }
  const std::int64_t size = size_in_bytes(assign.to.dtype);
  const StridedMove move{.to = assign.to.data,
                         .from = assign.from.data,
                         .pattern = {},
                         .row_bytes = assign.rows.length() * size,
                         .loops = loops_around<2>(assign.rows, &assign.slots, {size, size}),
                         .used = used_rows(assign.slots)};
  return plan_move(choice, move);
}

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Add& add) {
  if (add.rows.count() == 0) return LaunchSpecs{};
  Map map = map_of(add.to, add.from, add.rows, add.slots);
  map.function = MapFunction::Accumulate;
  map.wide = add.to.dtype == DType::F64;
  map.operands[2] = map.operands[0];
  return plan_map(choice, map);
}

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Fill& fill) {
  if (fill.rows.count() == 0) return LaunchSpecs{};
  const auto pattern = pattern_of(fill.to.dtype, fill.value);
  if (!pattern) return no_kernel(choice, "filling `" + std::string(print(fill.to.dtype)) + "`");
  const std::int64_t size = size_in_bytes(fill.to.dtype);
  StridedMove move{.to = fill.to.data,
                   .from = nullptr,
                   .pattern = *pattern,
                   .row_bytes = fill.rows.length() * size,
                   .loops = {}};
  for (std::size_t at = 0; at < fill.rows.loops().size(); ++at) {
    const std::int64_t bytes = fill.rows.strides(0)[at] * size;
    move.loops.push_back({.length = fill.rows.loops()[at], .bytes = {bytes, bytes}});
  }
  return plan_move(choice, move);
}

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const actions::Apply& apply) {
  const PointwiseProblem& first = apply.first;
  if (apply.rows.count() == 0 || first.length <= 0) return LaunchSpecs{};
  const auto operand = [](const PointwiseProblem::Operand& from) {
    return MapOperand{
        .data = const_cast<void*>(from.data), .dtype = from.dtype, .stride = from.stride};
  };
  Map map{
      .function = function_of(first.function),
      .wide =
          first.a.dtype == DType::F64 || (first.b.data != nullptr && first.b.dtype == DType::F64),
      .operands = {MapOperand{.data = first.to, .dtype = first.to_dtype, .stride = first.to_stride},
                   operand(first.a), operand(first.b)},
      .length = first.length,
      .loops = loops_around<3>(apply.rows, &apply.slots,
                               {size_in_bytes(first.to_dtype), size_in_bytes(first.a.dtype),
                                size_in_bytes(first.b.dtype)}),
      .used = used_rows(apply.slots),
      .features = first.features,
      .epsilon = first.epsilon};
  // The rows around the function's own axis may themselves have a dense row: one more loop here.
  if (apply.rows.length() > 1) {
    map.loops.push_back({.length = apply.rows.length(),
                         .bytes = {size_in_bytes(first.to_dtype), size_in_bytes(first.a.dtype),
                                   size_in_bytes(first.b.dtype)}});
  }
  return plan_map(choice, map);
}

}  // namespace harpe::cuda
