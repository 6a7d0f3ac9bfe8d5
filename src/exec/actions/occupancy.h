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

// How much of a ragged axis `C of E` is used (commir.md 8): for block b of C and position e of its
// owner, the number of leading rows in use. It is known only at run time, so every allocation of a
// ragged buffer carries these numbers beside its data, and every action that moves or writes rows
// of a block does the same to the block's number. Numbers are indexed by (e, b), not by slot, so
// contents that share a slot in turn keep their own. They lie in the memory of the rank that holds
// the data, whose owner sets them to zero before a run: no rows.
class Occupancy {
 public:
  // `memory`: per rank, bytes_per_rank() bytes that the computing processor can access,
  // word-aligned.
  Occupancy(const Plan& plan, const Blocks& blocks, std::span<std::byte* const> memory);
  // Per rank; equal on all.
  [[nodiscard]] static std::int64_t bytes_per_rank(const Plan& plan, const Blocks& blocks);

  // Numbers of one allocation of a buffer; 0 without a ragged axis.
  [[nodiscard]] static std::int64_t count_numbers(const Plan& plan, const Blocks& blocks,
                                                  const Buffer& buffer);

  // The allocation's numbers, [owner][block]; null if its buffer has no ragged axis.
  [[nodiscard]] std::int32_t* of(AllocId alloc) const { return rows_[alloc.index()]; }

 private:
  std::vector<std::int32_t*> rows_;  // per allocation
};

// Checks inputs and outputs. Ragged buffers must be temporaries, because callers cannot pass their
// numbers. Errors: X015.
[[nodiscard]] Checked<Ok> check_buffers(const Program& program);

// The ragged axis of a task's space.
struct RaggedAxis {
  std::size_t slot;  // axes of the space
  std::size_t owner;
  const AxisTable* slots;
  double taken = 1;  // share of its rows in use, if choices are spread evenly

  // Adds cuts so that each cell lies in one block of one owner.
  void add_cuts(std::vector<std::vector<std::int64_t>>& cuts,
                const std::vector<Interval>& box) const;
  // Index of the cell's number within an allocation's numbers.
  [[nodiscard]] std::ptrdiff_t number_of(const std::vector<Interval>& span) const;
  // Number of the block's rows that precede the cell.
  [[nodiscard]] std::int64_t rows_before(const std::vector<Interval>& span) const;
};

// `keys`: the axes of the space (AxisKey: index into Blocks::axes, or negative).
[[nodiscard]] std::optional<RaggedAxis> ragged_axis_of_space(const Plan& plan, const Blocks& blocks,
                                                             std::span<const int> keys);

// Tasks that write different features of one block write the same number concurrently: relaxed
// atomics.
[[nodiscard]] inline std::int64_t read_used(const std::int32_t* rows) {
  return std::atomic_ref(*const_cast<std::int32_t*>(rows)).load(std::memory_order_relaxed);
}
inline void write_used(std::int32_t* rows, std::int64_t count) {
  std::atomic_ref(*rows).store(static_cast<std::int32_t>(count), std::memory_order_relaxed);
}

// The number of rows of an action, which is known only at run time.
struct Used {
  const std::int32_t* rows = nullptr;  // of the block; null: all rows are used
  std::int64_t before = 0;             // rows of the block before the action's first
  double taken = 1;                    // share of the rows in use, if choices are spread evenly
  [[nodiscard]] std::int64_t count() const { return read_used(rows); }
  [[nodiscard]] std::int64_t of(std::int64_t capacity) const {
    return rows == nullptr ? capacity : std::clamp(count() - before, std::int64_t{0}, capacity);
  }
};

// Copies the operand's number of used rows to the result, if both have one.
inline void note_used(std::int32_t* result, const Used& operand) {
  if (result != nullptr && operand.rows != nullptr) write_used(result, operand.count());
}

}  // namespace harpe::actions
