#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"
#include "support/diag.h"

namespace harpe::actions {

// How much of a ragged axis `C of E` is used (commir.md 8): of the block of C number b and position
// e of its owner, the first so many rows. Known only at run time, so every allocation of a ragged
// buffer carries these numbers beside its data, and whatever moves or makes rows of a block moves
// or makes the block's number. Numbers stand by (e, b), not by slot: contents that take turns in a
// slot do not share them. They are where the rank's data are, whose owner sets them to zero before
// a run: nothing is there.
class Occupancy {
 public:
  // `memory` per rank: so many bytes where whoever computes can read and write, aligned to words.
  Occupancy(const Plan& plan, const Blocks& blocks, std::span<std::byte* const> memory);
  // Of each rank; equal on all.
  [[nodiscard]] static std::int64_t bytes_per_rank(const Plan& plan, const Blocks& blocks);

  // Of one allocation of a buffer; 0 where that has no ragged axis.
  [[nodiscard]] static std::int64_t count_numbers(const Plan& plan, const Blocks& blocks,
                                                  const Buffer& buffer);

  // The allocation's numbers, [owner][block]; null where its buffer has no ragged axis.
  [[nodiscard]] std::int32_t* of(AllocId alloc) const { return rows_[alloc.index()]; }

 private:
  std::vector<std::int32_t*> rows_;  // per allocation
};

// What callers give and take. Ragged buffers live within a plan: no caller gives or takes their
// numbers. Errors: X015.
[[nodiscard]] Checked<Ok> check_buffers(const Program& program);

// The ragged axis of a task's space, where it has one.
struct RaggedAxis {
  std::size_t slot;  // axes of the space
  std::size_t owner;
  const AxisTable* slots;
  double taken = 1;  // of its rows, where choices are spread evenly

  // Positions to cut at, so that a cell lies in one block of one owner.
  void add_cuts(std::vector<std::vector<std::int64_t>>& cuts,
                const std::vector<Interval>& box) const;
  // Index of the cell's number among an allocation's.
  [[nodiscard]] std::ptrdiff_t number_of(const std::vector<Interval>& span) const;
  // Rows of the cell's block before the cell.
  [[nodiscard]] std::int64_t rows_before(const std::vector<Interval>& span) const;
};

// `keys` are the space's axes (AxisKey: index into Blocks::axes, or negative).
[[nodiscard]] std::optional<RaggedAxis> ragged_axis_of_space(const Plan& plan, const Blocks& blocks,
                                                             std::span<const int> keys);

// Tasks that make different features of one block write the same number, in no order: atomically.
[[nodiscard]] inline std::int64_t read_used(const std::int32_t* rows) {
  return std::atomic_ref(*const_cast<std::int32_t*>(rows)).load(std::memory_order_relaxed);
}
inline void write_used(std::int32_t* rows, std::int64_t count) {
  std::atomic_ref(*rows).store(static_cast<std::int32_t>(count), std::memory_order_relaxed);
}

// How many rows an action has, when that is known only as it runs.
struct Used {
  const std::int32_t* rows = nullptr;  // of the block; null: all rows are used
  std::int64_t before = 0;             // rows of the block before the action's first
  double taken = 1;                    // of the rows, where choices are spread evenly
  [[nodiscard]] std::int64_t count() const { return read_used(rows); }
  [[nodiscard]] std::int64_t of(std::int64_t capacity) const {
    return rows == nullptr ? capacity : std::clamp(count() - before, std::int64_t{0}, capacity);
  }
};

// A block's result takes over how many rows its operand has, where both are known.
inline void note_used(std::int32_t* result, const Used& operand) {
  if (result != nullptr && operand.rows != nullptr) write_used(result, operand.count());
}

}  // namespace harpe::actions
