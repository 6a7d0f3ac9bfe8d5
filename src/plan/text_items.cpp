#include "plan/text_items.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "plan/text_parts.h"

namespace harpe {
namespace {

using plan_text::accept_word;
using plan_text::expect_id;
using plan_text::out_of_range;
using plan_text::parse_count;
using plan_text::parse_rank;
using plan_text::parse_reference;
using plan_text::parse_small;
using plan_text::parse_word;
using plan_text::quote;
using plan_text::wrong_length;

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

Checked<std::int32_t> parse_flag(Cursor& line) {
  if (!line.at(TokenKind::Integer)) return -1;
  return parse_small(line, "flag");
}

Diag bad_box(const Cursor& line, const Token& token, std::string_view box, const std::string& owner,
             const std::string& problem) {
  return line.locate(
      make_diag(DiagCode::V105, {{"box", box}, {"owner", owner}, {"problem", problem}}), token);
}

// `3` or `2..5`, not yet checked against the digit's extent.
Checked<Range> parse_range(Cursor& line) {
  HP_TRY(const std::int64_t lo, parse_count(line, "digit value", kMaxInt32 - 1));
  std::int64_t hi = lo + 1;
  if (line.accept("..")) {
    HP_TRY(hi, parse_count(line, "end of the range", kMaxInt32));
  }
  return Range{static_cast<std::int32_t>(lo), static_cast<std::int32_t>(hi)};
}

constexpr std::array<std::string_view, 5> kSections = {"alloc", "lane", "task", "sync", "barrier"};

}  // namespace

PlanItemParser::PlanItemParser(const Blocks& blocks, Plan& plan) : blocks_(blocks), plan_(plan) {
  for (const BufferTable& table : blocks.buffers()) {
    buffers_.push_back(digit_list("buffer " + quote(table.name), table.digits));
  }
  for (const Nest& nest : plan.program.nests) {
    const std::vector<int> digits = iteration_digits(plan.program, blocks, nest);
    nests_.push_back(digit_list("nest " + quote(nest.name), digits));
  }
}

PlanItemParser::DigitList PlanItemParser::digit_list(std::string owner,
                                                     const std::vector<int>& digits) const {
  DigitList list{.owner = std::move(owner), .names = {}, .extents = {}};
  for (const int digit : digits) {
    const DigitTable& table = blocks_.digits()[static_cast<std::size_t>(digit)];
    list.names.push_back(table.name);
    list.extents.push_back(table.extent);
  }
  return list;
}

Checked<Ok> PlanItemParser::parse_item(Cursor& line) {
  const auto* section = std::ranges::find(kSections, line.peek().text);
  const auto index = static_cast<std::size_t>(section - kSections.begin());
  if (!line.at(TokenKind::Identifier) || index == kSections.size() || index < section_) {
    std::string expected;
    for (std::size_t i = section_; i < kSections.size(); ++i)
      expected += quote(kSections[i]) + ", ";
    return line.unexpected(expected.substr(0, expected.size() - 2) + " or `}`");
  }
  section_ = index;
  line.take();
  switch (index) {
    case 0:
      HP_REQUIRE_OK(parse_alloc(line));
      break;
    case 1:
      HP_REQUIRE_OK(parse_queue(line));
      break;
    case 2:
      HP_REQUIRE_OK(parse_task(line));
      break;
    case 3:
      HP_REQUIRE_OK(parse_sync(line));
      break;
    default:
      HP_REQUIRE_OK(parse_barrier(line));
      break;
  }
  if (!line.at_end()) return line.unexpected("the end of the line");
  return Ok{};
}

Checked<Ok> PlanItemParser::parse_alloc(Cursor& line) {
  HP_REQUIRE_OK(expect_id(line, "alloc", plan_.allocs.size()));
  HP_TRY(Alloc alloc, plan_text::parse_alloc(line, blocks_, plan_.program.name));
  alloc_buffer_.push_back(blocks_.find_buffer(alloc.buffer));
  plan_.allocs.push_back(std::move(alloc));
  return Ok{};
}

Checked<Ok> PlanItemParser::parse_queue(Cursor& line) {
  Queue queue;
  HP_REQUIRE_OK(expect_id(line, "lane", plan_.queues.size()));
  HP_TRY(queue.rank, parse_rank(line, blocks_));
  HP_TRY(queue.kind, parse_word(line, "a lane kind", QueueKind::Multimem));
  plan_.queues.push_back(queue);
  return Ok{};
}

Checked<Ok> PlanItemParser::parse_task(Cursor& line) {
  if (std::cmp_greater_equal(plan_.tasks.size(), kMaxPlanTasks)) {
    return line.locate(make_diag(DiagCode::V106, {{"limit", kMaxPlanTasks}}), line.peek());
  }
  Task task;
  HP_REQUIRE_OK(expect_id(line, "task", plan_.tasks.size()));
  HP_REQUIRE_OK(line.expect("lane"));
  HP_TRY(const std::int64_t queue, parse_reference(line, "lane", plan_.queues.size()));
  task.queue = QueueId(queue);
  HP_TRY(task.kind, parse_word(line, "a task kind", TaskKind::Collective));
  HP_REQUIRE_OK(parse_move(line, task));
  if (line.at(TokenKind::Identifier) && line.peek(1).text == ".") {
    HP_REQUIRE_OK(parse_statement(line, task));
  }
  if (line.accept("kernel")) {
    HP_TRY(task.kernel, parse_small(line, "kernel"));
  }
  if (line.accept("leaf")) {
    HP_TRY(task.leaf_kernel, line.expect_string("the name of a kernel"));
  }
  if (line.accept("group")) {
    HP_TRY(task.group, parse_small(line, "group"));
  }
  HP_REQUIRE_OK(parse_accesses(line, task));
  plan_.tasks.push_back(std::move(task));
  return Ok{};
}

Checked<Ok> PlanItemParser::parse_sync(Cursor& line) {
  Sync sync;
  HP_TRY(sync.from, parse_task_id(line));
  HP_REQUIRE_OK(line.expect("->"));
  HP_TRY(sync.to, parse_task_id(line));
  HP_REQUIRE_OK(line.expect("via"));
  HP_TRY(sync.kind, parse_word(line, "a kind of sync", SyncKind::Counter));
  HP_TRY(sync.flag, parse_flag(line));
  if (line.accept("fence")) {
    HP_TRY(sync.fence, parse_word(line, "a fence policy", Fence::Immediate));
  }
  plan_.syncs.push_back(sync);
  return Ok{};
}

Checked<Ok> PlanItemParser::parse_barrier(Cursor& line) {
  Barrier barrier;
  while (!line.at("->")) {
    if (!barrier.from.empty()) HP_REQUIRE_OK(line.expect(","));
    HP_TRY(barrier.from.emplace_back(), parse_task_id(line));
  }
  line.take();
  while (!line.at("via")) {
    if (!barrier.to.empty()) HP_REQUIRE_OK(line.expect(","));
    HP_TRY(barrier.to.emplace_back(), parse_task_id(line));
  }
  line.take();
  HP_REQUIRE_OK(line.expect("counter"));
  HP_TRY(barrier.flag, parse_flag(line));
  plan_.barriers.push_back(std::move(barrier));
  return Ok{};
}

Checked<Ok> PlanItemParser::parse_statement(Cursor& line, Task& task) const {
  HP_TRY(plan_text::StatementName name, plan_text::parse_statement(line, plan_.program));
  task.nest = std::move(name.nest);
  task.stmt = name.stmt;
  return Ok{};
}

Checked<Ok> PlanItemParser::parse_move(Cursor& line, Task& task) const {
  // `bulk.0` is a statement of a nest named `bulk`.
  const auto at_word = [&] { return line.peek(1).text != "."; };
  if (at_word()) {
    if (const auto op = accept_word(line, CollectiveOp::ReduceScatter)) task.collective = *op;
  }
  if (at_word()) {
    if (const auto how = accept_word(line, How::OneShot)) task.how = *how;
  }
  if (at_word() && line.accept("via")) {
    HP_TRY(task.via, parse_word(line, "a transport", Via::Multimem));
  }
  if (at_word() && line.accept("wire")) {
    HP_TRY(const std::string dtype, line.expect_identifier("a dtype"));
    task.wire = parse_dtype(dtype);
    if (!task.wire) return line.unexpected("a dtype after `wire`");
  }
  if (at_word() && line.accept("bytes")) {
    HP_TRY(task.bytes, parse_count(line, "bytes", kMaxInt64));
  }
  return Ok{};
}

Checked<Ok> PlanItemParser::parse_accesses(Cursor& line, Task& task) const {
  if (line.at("iter")) {
    const auto nest = std::ranges::find(plan_.program.nests, task.nest, &Nest::name);
    if (nest == plan_.program.nests.end()) return line.unexpected("a statement before `iter`");
    const auto index = static_cast<std::size_t>(nest - plan_.program.nests.begin());
    line.take();
    do {
      HP_TRY(task.iter.emplace_back(), parse_box(line, nests_[index]));
    } while (line.at("["));
  }
  while (line.accept("r")) {
    HP_TRY(task.reads.emplace_back(), parse_ref(line, WriteMode::Read));
  }
  while (!line.at_end()) {
    const std::optional<WriteMode> mode = accept_word(line, WriteMode::Set);
    if (!mode || *mode == WriteMode::Read) {
      return line.unexpected("`init`, `add`, `set` or the end of the line");
    }
    HP_TRY(task.writes.emplace_back(), parse_ref(line, *mode));
  }
  return Ok{};
}

Checked<Ref> PlanItemParser::parse_ref(Cursor& line, WriteMode mode) const {
  Ref ref;
  ref.mode = mode;
  HP_TRY(const std::int64_t alloc, parse_reference(line, "alloc", plan_.allocs.size()));
  ref.alloc = AllocId(alloc);
  const DigitList& digits = buffers_[static_cast<std::size_t>(alloc_buffer_[ref.alloc.index()])];
  while (line.at("[")) {
    HP_TRY(ref.boxes.emplace_back(), parse_box(line, digits));
  }
  if (line.accept("when")) {
    RouteChoice choice;
    HP_TRY(choice.digit, line.expect_identifier("the digit of a route"));
    HP_REQUIRE_OK(line.expect("="));
    HP_TRY(choice.value, parse_small(line, "value"));
    ref.when = std::move(choice);
  }
  return ref;
}

Checked<TaskId> PlanItemParser::parse_task_id(Cursor& line) const {
  HP_TRY(const std::int64_t task, parse_reference(line, "task", plan_.tasks.size()));
  return TaskId(task);
}

Checked<Box> PlanItemParser::parse_box(Cursor& line, const DigitList& digits) {
  const Token start = line.peek();
  HP_REQUIRE_OK(line.expect("["));
  Box box;
  box.reserve(digits.extents.size());
  while (!line.at("]")) {
    if (!box.empty()) HP_REQUIRE_OK(line.expect(","));
    const Token token = line.peek();
    const std::size_t digit = box.size();
    const std::int32_t extent = digit < digits.extents.size() ? digits.extents[digit] : 1;
    if (line.accept("*")) {
      box.push_back({0, extent});
      continue;
    }
    HP_TRY(const Range range, parse_range(line));
    box.push_back(range);
    if (digit < digits.extents.size() && (range.lo >= range.hi || range.hi > extent)) {
      return bad_box(line, token, "box", digits.owner,
                     "has " + std::to_string(range.lo) + ".." + std::to_string(range.hi) +
                         " at digit " + quote(digits.names[digit]) + " of extent " +
                         std::to_string(extent));
    }
  }
  line.take();
  if (box.size() == digits.extents.size()) return box;
  return bad_box(line, start, "box", digits.owner, wrong_length(box.size(), digits.names));
}

}  // namespace harpe
