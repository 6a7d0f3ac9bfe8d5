#include "exec/describe.h"

#include "plan/text.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr std::size_t kMaxBoxes = 3;

std::vector<std::int32_t> extents_of(const Blocks& blocks, const std::vector<int>& digits) {
  std::vector<std::int32_t> extents;
  extents.reserve(digits.size());
  for (const int digit : digits) {
    extents.push_back(blocks.digits()[static_cast<std::size_t>(digit)].extent);
  }
  return extents;
}

std::string describe_boxes(const std::vector<Box>& boxes,
                           const std::vector<std::int32_t>& extents) {
  std::string text;
  for (std::size_t i = 0; i < boxes.size() && i < kMaxBoxes; ++i) {
    text += " " + print_box(boxes[i], extents);
  }
  return boxes.size() > kMaxBoxes ? text + " …" : text;
}

std::string describe_iteration(const Plan& plan, const Blocks& blocks, const Task& task) {
  const Nest* nest = find_nest(plan.program, task.nest);
  HP_CHECK(nest != nullptr, "nest `" + task.nest + "` of a task");
  std::vector<int> digits;
  for (const std::string& axis : nest->over) {
    const auto index = static_cast<std::size_t>(blocks.find_axis(axis));
    const std::vector<int>& more = blocks.axes()[index].digits;
    digits.insert(digits.end(), more.begin(), more.end());
  }
  return " iter" + describe_boxes(task.iter, extents_of(blocks, digits));
}

std::string describe_ref(const Plan& plan, const Blocks& blocks, const Ref& ref, RankId rank) {
  const Alloc& alloc = plan.allocs[ref.alloc.index()];
  std::string text = " " + alloc.name;
  if (alloc.rank != rank) text += " of rank " + std::to_string(alloc.rank.value);
  const auto buffer = static_cast<std::size_t>(blocks.find_buffer(alloc.buffer));
  return text + describe_boxes(ref.boxes, extents_of(blocks, blocks.buffers()[buffer].digits));
}

}  // namespace

std::string describe(const Plan& plan, const Blocks& blocks, TaskId id) {
  const Task& task = plan.tasks[id.index()];
  const RankId rank = rank_of(plan, id);
  std::string text(print(task.kind));
  if (task.kind == TaskKind::Collective) {
    text += " " + std::string(print(task.collective)) + " " + std::to_string(task.group);
  }
  if (!task.nest.empty()) text += " " + task.nest + "." + std::to_string(task.stmt);
  if (task.kind == TaskKind::Compute) return text + describe_iteration(plan, blocks, task);
  if (task.kind == TaskKind::Entry || task.kind == TaskKind::Exit) {
    return text + " of rank " + std::to_string(rank.value);
  }
  if (!task.reads.empty()) text += describe_ref(plan, blocks, task.reads.front(), rank);
  if (!task.reads.empty() && !task.writes.empty()) text += " ->";
  if (!task.writes.empty()) text += describe_ref(plan, blocks, task.writes.front(), rank);
  return text;
}

}  // namespace harpe
