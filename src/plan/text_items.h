#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/blocks.h"
#include "plan/plan.h"
#include "support/lexer.h"

namespace harpe {

constexpr std::int64_t kMaxPlanTasks = 1'000'000;

// Parses the lines of a plan's block one by one and appends to `plan` (private to the plan's
// parser).
class PlanItemParser {
 public:
  // Requires: `blocks` was made from the plan's program, mesh and form. Both outlive the parser.
  PlanItemParser(const Blocks& blocks, Plan& plan);

  // One whole line: alloc, queue, task, sync or barrier, in this order across calls.
  // Errors: T0xx, V103, V104, V105, V106; positions are within the line.
  [[nodiscard]] Checked<Ok> parse_item(Cursor& line);

 private:
  // The digits that a box ranges over: those of a buffer or of an iteration space.
  struct DigitList {
    std::string owner;  // "buffer `A`"
    std::vector<std::string> names;
    std::vector<std::int32_t> extents;
  };

  [[nodiscard]] DigitList digit_list(std::string owner, const std::vector<int>& digits) const;

  [[nodiscard]] Checked<Ok> parse_alloc(Cursor& line);
  [[nodiscard]] Checked<Ok> parse_queue(Cursor& line);
  [[nodiscard]] Checked<Ok> parse_task(Cursor& line);
  [[nodiscard]] Checked<Ok> parse_sync(Cursor& line);
  [[nodiscard]] Checked<Ok> parse_barrier(Cursor& line);

  [[nodiscard]] Checked<Ok> parse_statement(Cursor& line, Task& task) const;
  [[nodiscard]] Checked<Ok> parse_move(Cursor& line, Task& task) const;
  [[nodiscard]] Checked<Ok> parse_accesses(Cursor& line, Task& task) const;
  [[nodiscard]] Checked<Ref> parse_ref(Cursor& line, WriteMode mode) const;
  [[nodiscard]] Checked<TaskId> parse_task_id(Cursor& line) const;
  [[nodiscard]] static Checked<Box> parse_box(Cursor& line, const DigitList& digits);

  const Blocks& blocks_;
  Plan& plan_;
  std::vector<DigitList> buffers_;          // as Blocks::buffers
  std::vector<DigitList> nests_;            // as Program::nests
  std::vector<std::int32_t> alloc_buffer_;  // per alloc so far: index into buffers_
  std::size_t section_ = 0;                 // of the last item: sections must not go back
};

}  // namespace harpe
