#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exec/actions/occupancy.h"
#include "exec/actions/problems.h"
#include "ir/blocks.h"
#include "plan/plan.h"
#include "plan/ref_layouts.h"

namespace harpe::actions {

// Where each rank's arena begins in the address space of the computing processor, peers included.
struct Bases {
  std::vector<std::byte*> arenas;  // per rank
  // Allocations outside their arena, by rank and name.
  std::map<std::pair<RankId, std::string>, std::byte*> apart{};
  [[nodiscard]] std::byte* address(const Alloc& alloc) const;
};

// Memory for intermediate results between the actions of one task; lives as long as the actions.
struct Scratch {
  std::function<std::byte*(std::int64_t bytes)> reserve;
  std::int64_t elements = 0;  // the most that a fold should hold at a time
};

// A plan with its index algebra and its memory, for preparing tasks.
struct Setting {
  const Plan& plan;
  const Blocks& blocks;
  launch::RefLayouts& layouts;  // of the plan
  const Bases& bases;
  const Occupancy& occupancy;
  const Scratch& scratch;
  Products products = Products::Libraries;
};

// Axes of a task's data, as keys: an index into Blocks::axes, or -1, -2, … for the first, second, …
// opaque dimension of a buffer.
using AxisKey = int;

// The keys of a buffer's axes: the flattened ones, then the opaque ones.
[[nodiscard]] std::vector<AxisKey> keys_of(const BufferTable& buffer);
[[nodiscard]] std::int64_t length_of(const Blocks& blocks, const BufferTable& buffer, AxisKey key);

// A rectangle of one slot in memory, contiguous in logical positions along every axis of its buffer
// (order of keys_of).
struct Patch {
  std::byte* data = nullptr;  // its first element
  DType dtype = DType::F32;
  WriteMode mode = WriteMode::Read;
  std::vector<Interval> span;
  std::vector<std::int64_t> strides;  // elements
  std::int32_t* occupancy = nullptr;  // of the slot, if its buffer has a ragged axis
};

// The patches of a reference, and of a home.
[[nodiscard]] std::vector<Patch> patches_of(const Setting& setting, const Ref& ref);
[[nodiscard]] std::vector<Patch> patches_of_home(const Setting& setting, AllocId home);
// The patches of a place; empty if its allocation cannot hold all of its elements at once.
[[nodiscard]] std::vector<Patch> patches_of(const Setting& setting, const launch::Place& place,
                                            WriteMode mode);

// One buffer's patches in a task; each of its axes maps to an axis of the task's space.
struct Participant {
  std::string buffer;
  std::vector<std::size_t> axes;  // per axis of the buffer: index into the space
  std::vector<Patch> patches;
};

// One participant's part of a cell; null data if it has no part.
struct View {
  std::byte* data = nullptr;
  DType dtype = DType::F32;
  WriteMode mode = WriteMode::Read;
  std::vector<std::int64_t> strides;  // elements, per axis of the space; 0 for axes it lacks
  std::int32_t* used = nullptr;       // number of used rows of the cell's block (Occupancy)
};

// A box of the task's space in which every participant has one patch or none.
struct Cell {
  std::vector<Interval> span;
  std::vector<View> views;  // per participant
  // In a space with a ragged axis: that axis, and the rows of its block before the cell.
  std::optional<std::size_t> slot_axis = std::nullopt;
  std::int64_t rows_before = 0;
  double rows_taken = 1;  // share of its rows in use, if choices are spread evenly
};

// Cuts a box of the space into the grid of cells that the participants' patches induce, last axis
// fastest. `cuts` (per axis, may be empty) adds positions to cut at. An empty box has no cells.
// Along a ragged axis a cell lies in one block of one owner.
[[nodiscard]] std::vector<Cell> cut(const std::vector<Interval>& box,
                                    std::span<const Participant> participants,
                                    std::vector<std::vector<std::int64_t>> cuts,
                                    const std::optional<RaggedAxis>& ragged);

}  // namespace harpe::actions
