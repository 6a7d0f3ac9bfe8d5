#include <algorithm>
#include <optional>

#include "exec/cuda/kernels/loop_nests.h"
#include "exec/cuda/kernels/plain/plain_plans.h"

namespace harpe::cuda {
namespace {

using actions::Combine;
using actions::Sum;
using device::FoldOperand;

constexpr std::size_t kSumOperands = 1 + actions::kFoldSources;
constexpr std::int64_t kStatesOfBlock = device::kRowThreads / 32;
static_assert(actions::kFoldSources == device::kFoldSources);
static_assert(Combine::kOperands == device::CombineArgs::kOperands);

// None for types without arithmetic.
std::optional<FoldOperand> operand_of(const void* data, DType dtype, std::optional<DType> wire) {
  const std::optional<device::Number> number = number_of(dtype);
  const std::optional<device::Number> rounded = number_of(wire.value_or(dtype));
  if (!number || !rounded) return std::nullopt;
  return FoldOperand{.data = data, .number = *number, .wire = *rounded};
}

Diag no_numbers(const LaunchChoice& choice, DType dtype) {
  return no_kernel(choice, "elements of `" + std::string(print(dtype)) + "`");
}

// Loops around a row, and the element size of each operand in bytes.
struct SumLoops {
  Loops<kSumOperands> loops;
  std::array<std::int64_t, kSumOperands> sizes{};
};

SumLoops loops_of(const Sum& sum) {
  SumLoops all;
  all.sizes[0] = size_in_bytes(sum.to.dtype);
  for (std::size_t i = 0; i < sum.from.size(); ++i) {
    all.sizes[1 + i] = size_in_bytes(sum.from[i].view.dtype);
  }
  for (std::size_t at = 0; at < sum.rows.loops().size(); ++at) {
    actions::Loop<kSumOperands> loop{.length = sum.rows.loops()[at], .bytes = {}};
    for (std::size_t i = 0; i <= sum.from.size(); ++i) {
      loop.bytes[i] = sum.rows.strides(i)[at] * all.sizes[i];
    }
    all.loops.push_back(loop);
  }
  return all;
}

// Whether rows can be processed `width` elements at a time.
bool fits_vectors(const Sum& sum, const SumLoops& all, std::int64_t width) {
  if (sum.rows.length() % width != 0) return false;
  for (std::size_t i = 0; i <= sum.from.size(); ++i) {
    const std::int64_t align = std::min<std::int64_t>(16, width * all.sizes[i]);
    const void* const data = i == 0 ? sum.to.data : sum.from[i - 1].view.data;
    if (address_of(data) % static_cast<DeviceAddress>(align) != 0) return false;
    const auto is_apart = [&](const auto& loop) { return loop.bytes[i] % align != 0; };
    if (std::ranges::any_of(all.loops, is_apart)) return false;
  }
  return true;
}

// Adds both parts of a source. Errors: G072.
Checked<Ok> add_side(const LaunchChoice& choice, const Combine::Side& side,
                     device::CombineArgs& args) {
  const auto o = operand_of(side.o, side.o_dtype, side.wire);
  const auto l = operand_of(side.l, side.l_dtype, side.wire);
  if (!o || !l) return no_numbers(choice, o ? side.l_dtype : side.o_dtype);
  args.from_o[args.count] = *o;
  args.from_l[args.count] = *l;
  ++args.count;
  return Ok{};
}

void set_row_bytes(const Combine::Side& side, std::size_t at, device::CombineArgs& args) {
  args.row_bytes[at] = side.row_strides[0] * size_in_bytes(side.o_dtype);
  args.row_bytes[at + 1] = side.row_strides[1] * size_in_bytes(side.l_dtype);
}

template <class T, std::size_t kOperands>
void move_all(std::span<T> operands, const std::array<std::int64_t, kOperands>& offsets,
              std::size_t first, std::size_t step) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    operands[i].data = moved(operands[i].data, offsets[first + step * i]);
  }
}

}  // namespace

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const Sum& sum) {
  LaunchSpecs launches;
  if (sum.rows.count() == 0) return launches;
  device::SumArgs args{};
  const auto to = number_of(sum.to.dtype);
  if (!to) return no_numbers(choice, sum.to.dtype);
  args.to_number = *to;
  for (const Sum::Source& source : sum.from) {
    const auto operand = operand_of(source.view.data, source.view.dtype, source.wire);
    if (!operand) return no_numbers(choice, source.view.dtype);
    args.from[args.count++] = *operand;
  }
  const bool wide = sum.state == DType::F64;
  SumLoops all = loops_of(sum);
  std::int64_t width = device::map_width(wide);
  args.vectors = fits_vectors(sum, all, width);
  if (!args.vectors) width = 1;
  actions::Loop<kSumOperands> row{.length = sum.rows.length() / width, .bytes = {}};
  for (std::size_t i = 0; i < kSumOperands; ++i) row.bytes[i] = width * all.sizes[i];
  all.loops.push_back(row);
  const Loops<kSumOperands> loops = joined(std::move(all.loops));
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops + 1, [&](const auto& offsets, const auto& inner) {
        device::SumArgs own = args;
        own.to = moved(sum.to.data, offsets[0]);
        move_all(std::span(own.from).first(sum.from.size()), offsets, 1, 1);
        own.nest = nest_of(inner);
        own.turns = turns_of(inner);
        launches.emplace_back(
            PlainLaunch{.kernel = PlainKernel::Sum,
                        .wide = wide,
                        .blocks = few_blocks(choice, divide_up(own.turns, device::kStridedThreads)),
                        .args = own});
      }));
  return launches;
}

Checked<LaunchSpecs> plan(const LaunchChoice& choice, const Combine& fold) {
  LaunchSpecs launches;
  device::CombineArgs args{};
  const auto o = number_of(fold.to.o_dtype);
  const auto l = number_of(fold.to.l_dtype);
  if (!o || !l) return no_numbers(choice, o ? fold.to.l_dtype : fold.to.o_dtype);
  args.o_number = *o;
  args.l_number = *l;
  args.rows = fold.rows;
  args.value_dim = fold.value_dim;
  set_row_bytes(fold.to, 0, args);
  for (std::size_t i = 0; i < fold.from.size(); ++i) {
    HP_REQUIRE_OK(add_side(choice, fold.from[i], args));
    set_row_bytes(fold.from[i], 2 + 2 * i, args);
  }
  const Loops<Combine::kOperands> loops = joined(fold.loops);
  HP_REQUIRE_OK(for_each_launch(
      choice, loops, device::kMaxLoops, [&](const auto& offsets, const auto& inner) {
        device::CombineArgs own = args;
        own.o = fold.to.o + offsets[0];
        own.l = fold.to.l + offsets[1];
        move_all(std::span(own.from_o).first(fold.from.size()), offsets, 2, 2);
        move_all(std::span(own.from_l).first(fold.from.size()), offsets, 3, 2);
        own.nest = nest_of(inner);
        own.all_rows = fold.rows * turns_of(inner);
        if (own.all_rows <= 0) return;
        launches.emplace_back(
            PlainLaunch{.kernel = PlainKernel::Combine,
                        .wide = fold.state == DType::F64,
                        .blocks = few_blocks(choice, divide_up(own.all_rows, kStatesOfBlock)),
                        .args = own});
      }));
  return launches;
}

}  // namespace harpe::cuda
