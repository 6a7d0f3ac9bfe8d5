#include "sim/launches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "ir/program.h"

namespace harpe {
namespace {

bool is_product(const Plan& plan, const Task& task) {
  if (task.kind != TaskKind::Compute || task.reads.size() < 2) return false;
  const Nest* const nest = find_nest(plan.program, task.nest);
  return nest != nullptr &&
         is_leaf(nest->stmts[static_cast<std::size_t>(task.stmt)].leaf, Leaf::Matmul);
}

bool is_same(const Ref& one, const Ref& other) {
  return one.alloc == other.alloc && one.boxes == other.boxes && one.when == other.when;
}

bool is_routed(const Task& task) {
  return std::ranges::any_of(task.reads, [](const Ref& ref) { return ref.when.has_value(); });
}

// Each is a panel with the first one's B, or a piece of the panel before.
bool merges(const std::vector<const Task*>& tasks) {
  for (std::size_t i = 1; i < tasks.size(); ++i) {
    const Task& task = *tasks[i];
    const bool is_panel = is_same(task.reads[1], tasks.front()->reads[1]);
    const bool is_piece = is_same(task.writes.front(), tasks[i - 1]->writes.front());
    if (!is_panel && !is_piece && !is_routed(task)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::int32_t> find_launches(const Plan& plan) {
  std::vector<std::int32_t> numbers;
  std::map<std::pair<QueueId, std::int32_t>, std::vector<const Task*>> kernels;
  for (const Task& task : plan.tasks) {
    numbers.push_back(task.kernel);
    if (task.kernel >= 0 && is_product(plan, task)) {
      kernels[{task.queue, task.kernel}].push_back(&task);
    }
  }
  for (const auto& [key, tasks] : kernels) {
    if (merges(tasks)) continue;
    for (const Task* const task : tasks) {
      numbers[static_cast<std::size_t>(task - plan.tasks.data())] = -1;
    }
  }
  // What is of no launch with others is one of its own.
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0) numbers[i] = -1 - static_cast<std::int32_t>(i);
  }
  return numbers;
}

double tiles_apart(std::span<const LaunchPart> parts, double tile) {
  double rows = 0;
  double apart = 0;
  const Ref* last = nullptr;
  for (const LaunchPart& part : parts) {
    const Ref* const target = part.refs[part.operands];
    if (last != nullptr && is_same(*last, *target)) continue;
    last = target;
    rows += part.shape.rows;
    apart += std::ceil(part.shape.rows / tile);
  }
  return apart / std::ceil(rows / tile);
}

}  // namespace harpe
