#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/actions/loops.h"
#include "exec/cuda/device/loop_nest.h"
#include "exec/cuda/kernels/plan_launches.h"
#include "support/check.h"

namespace harpe::cuda {

// Loops around kernels, before they become a device::LoopNest.
template <std::size_t kOperands>
using Loops = std::vector<actions::Loop<kOperands>>;

// The host iterates over loops beyond those that a kernel walks, with at most so many launches.
constexpr std::int64_t kMostLaunches = 4096;

template <std::size_t kOperands>
[[nodiscard]] std::int64_t turns_of(std::span<const actions::Loop<kOperands>> loops) {
  std::int64_t turns = 1;
  for (const actions::Loop<kOperands>& loop : loops) turns *= loop.length;
  return turns;
}

template <std::size_t kOperands>
[[nodiscard]] std::size_t count_kept(const Loops<kOperands>& loops) {
  return static_cast<std::size_t>(
      std::ranges::count(loops, false, &actions::Loop<kOperands>::reduces));
}

// The same iterations in fewer loops. Drops loops of length 1, moves loops that reduce to the end,
// and merges neighbours if one step of the outer equals all steps of the inner.
template <std::size_t kOperands>
[[nodiscard]] Loops<kOperands> joined(Loops<kOperands> loops) {
  std::erase_if(loops, [](const auto& loop) { return loop.length == 1; });
  std::ranges::stable_sort(loops, {}, &actions::Loop<kOperands>::reduces);
  Loops<kOperands> result;
  for (const actions::Loop<kOperands>& loop : loops) {
    bool continues = !result.empty() && result.back().reduces == loop.reduces;
    for (std::size_t i = 0; continues && i < kOperands; ++i) {
      continues = result.back().bytes[i] == loop.bytes[i] * loop.length;
    }
    if (!continues) {
      result.push_back(loop);
      continue;
    }
    result.back().length *= loop.length;
    result.back().bytes = loop.bytes;
  }
  return result;
}

// The loops with their first kOperands operands.
template <std::size_t kOperands, std::size_t kAll>
[[nodiscard]] Loops<kOperands> first_operands(const std::vector<actions::Loop<kAll>>& loops) {
  Loops<kOperands> result;
  for (const actions::Loop<kAll>& loop : loops) {
    actions::Loop<kOperands> part{.length = loop.length, .bytes = {}, .reduces = loop.reduces};
    std::copy_n(loop.bytes.begin(), kOperands, part.bytes.begin());
    result.push_back(part);
  }
  return result;
}

// The loops around rows, slots included, for operands of these element sizes. The operands are the
// first ones of the walk.
template <std::size_t kOperands, std::size_t kSlots>
[[nodiscard]] Loops<kOperands> loops_around(const actions::Rows& rows,
                                            const actions::SlotRows<kSlots>* slots,
                                            const std::array<std::int64_t, kOperands>& sizes) {
  Loops<kOperands> loops;
  if (slots != nullptr) {
    actions::Loop<kOperands> loop{.length = slots->capacity, .bytes = {}};
    for (std::size_t i = 0; i < kOperands; ++i) loop.bytes[i] = slots->strides[i] * sizes[i];
    loops.push_back(loop);
  }
  for (std::size_t at = 0; at < rows.loops().size(); ++at) {
    actions::Loop<kOperands> loop{.length = rows.loops()[at], .bytes = {}};
    for (std::size_t i = 0; i < kOperands; ++i) loop.bytes[i] = rows.strides(i)[at] * sizes[i];
    loops.push_back(loop);
  }
  return joined(std::move(loops));
}

template <std::size_t kOperands>
[[nodiscard]] device::LoopNest<static_cast<int>(kOperands)> nest_of(
    std::span<const actions::Loop<kOperands>> loops) {
  device::LoopNest<static_cast<int>(kOperands)> nest{};
  HP_CHECK(loops.size() <= std::size(nest.lengths), "more loops than kernels walk");
  for (std::size_t at = 0; at < loops.size(); ++at) {
    nest.lengths[at] = loops[at].length;
    std::ranges::copy(loops[at].bytes, nest.bytes[at]);
    if (!loops[at].reduces) nest.kept = static_cast<std::int32_t>(at + 1);
  }
  nest.count = static_cast<std::int32_t>(loops.size());
  return nest;
}

[[nodiscard]] inline Diag too_many_loops(const LaunchChoice& choice, std::size_t loops,
                                         std::size_t limit) {
  return make_diag(DiagCode::G075, {{"buffer", choice.buffer},
                                    {"loops", static_cast<std::int64_t>(loops)},
                                    {"limit", static_cast<std::int64_t>(limit)}});
}

// Calls body(offsets, inner loops) once per launch; offsets are in bytes. Requires: `loops` are
// joined. Errors: G075.
template <std::size_t kOperands, class Body>
[[nodiscard]] Checked<Ok> for_each_launch(const LaunchChoice& choice, const Loops<kOperands>& loops,
                                          std::size_t limit, const Body& body) {
  const std::size_t outer = loops.size() > limit ? loops.size() - limit : 0;
  const std::span<const actions::Loop<kOperands>> all(loops);
  if (outer > count_kept(loops) || turns_of(all.first(outer)) > kMostLaunches) {
    return too_many_loops(choice, loops.size(), limit);
  }
  actions::for_each_turn(all.first(outer),
                         [&](const auto& offsets, bool) { body(offsets, all.subspan(outer)); });
  return Ok{};
}

[[nodiscard]] inline Diag no_kernel(const LaunchChoice& choice, std::string_view what) {
  return make_diag(DiagCode::G072, {{"what", what}, {"nest", choice.nest}});
}

// The kernel that `patch` named cannot run it.
[[nodiscard]] inline Diag no_leaf(const LaunchChoice& choice, std::string_view reason) {
  return make_diag(DiagCode::G083,
                   {{"kernel", choice.kernel}, {"nest", choice.nest}, {"reason", reason}});
}

[[nodiscard]] DType dtype_of(device::Element element);

// None for types other than bf16 and f16.
[[nodiscard]] std::optional<device::Element> half_of(DType dtype);

// None for types without arithmetic.
[[nodiscard]] std::optional<device::Number> number_of(DType dtype);

template <class T>
[[nodiscard]] T* moved(T* data, std::int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(data) + bytes);
}

[[nodiscard]] inline device::UsedRows used_rows(const actions::Used& used, std::int32_t* result,
                                                std::int64_t capacity) {
  return {.rows = used.rows, .result = result, .before = used.before, .capacity = capacity};
}

[[nodiscard]] inline DeviceAddress address_of(const void* data) {
  return reinterpret_cast<DeviceAddress>(data);
}

[[nodiscard]] constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

// `blocks`, clamped to the size of a grid.
[[nodiscard]] constexpr std::int64_t as_grid(std::int64_t blocks) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  return std::clamp(blocks, std::int64_t{1}, kMost);
}

// Resident thread blocks per SM of small kernels.
constexpr std::int64_t kSmallBlocks = 8;

// For grid-stride loops: no more thread blocks than fill the SMs.
[[nodiscard]] inline std::int64_t few_blocks(const LaunchChoice& choice, std::int64_t blocks) {
  return std::clamp(blocks, std::int64_t{1}, kSmallBlocks * choice.multiprocessors);
}

}  // namespace harpe::cuda
