#include "plan/refs.h"

#include <algorithm>

namespace harpe {
namespace {

bool meet(const Box& one, const Box& other) {
  for (std::size_t digit = 0; digit < one.size(); ++digit) {
    if (one[digit].lo >= other[digit].hi || other[digit].lo >= one[digit].hi) return false;
  }
  return true;
}

}  // namespace

RankId rank_of(const Plan& plan, TaskId task) {
  return plan.queues[plan.tasks[task.index()].queue.index()].rank;
}

bool meet(const Ref& one, const Ref& other) {
  return one.alloc == other.alloc && std::ranges::any_of(one.boxes, [&](const Box& box) {
           return std::ranges::any_of(other.boxes, [&](const Box& at) { return meet(box, at); });
         });
}

}  // namespace harpe
