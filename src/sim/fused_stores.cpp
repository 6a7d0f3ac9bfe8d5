#include "sim/fused_stores.h"

#include <algorithm>
#include <map>

#include "ir/program.h"
#include "plan/refs.h"
#include "sim/launches.h"

namespace harpe {
namespace {

class FusedStoreFinder {
 public:
  explicit FusedStoreFinder(const Plan& plan)
      : plan_(plan), launches_(find_launches(plan)), found_(plan.tasks.size()) {}

  std::vector<std::vector<TaskId>> find() {
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const Task& task = plan_.tasks[i];
      Products& products = last_[task.queue];
      if (task.kind == TaskKind::Compute) {
        if (!products.is_open || launches_[i] != products.launch) products.tasks.clear();
        products.is_open = is_product(task);
        products.launch = launches_[i];
        if (products.is_open) products.tasks.emplace_back(static_cast<std::int64_t>(i));
      } else if (task.kind == TaskKind::Copy && sends_sums(task)) {
        found_[i] = makers_of(task, products.tasks);
        products.is_open = false;
      } else {
        products = {};
      }
    }
    return std::move(found_);
  }

 private:
  // The last launch of a queue; open while nothing but products follows.
  struct Products {
    std::vector<TaskId> tasks;
    std::int32_t launch = 0;
    bool is_open = false;
  };

  [[nodiscard]] bool is_product(const Task& task) const {
    const Nest* const nest = find_nest(plan_.program, task.nest);
    return nest != nullptr &&
           is_leaf(nest->stmts[static_cast<std::size_t>(task.stmt)].leaf, Leaf::Matmul);
  }

  [[nodiscard]] bool sends_sums(const Task& task) const {
    if (task.via != Via::Sm || task.reads.size() != task.writes.size()) return false;
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      const Alloc& from = plan_.allocs[task.reads[i].alloc.index()];
      const Alloc& to = plan_.allocs[task.writes[i].alloc.index()];
      const bool rounds = size_in_bytes(to.dtype) < size_in_bytes(from.dtype);
      if (from.level != Level::Acc || from.rank == to.rank || !rounds) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<TaskId> makers_of(const Task& copy,
                                              const std::vector<TaskId>& products) const {
    std::vector<TaskId> makers;
    for (const TaskId product : products) {
      const bool makes = std::ranges::any_of(copy.reads, [&](const Ref& read) {
        return std::ranges::any_of(plan_.tasks[product.index()].writes,
                                   [&](const Ref& write) { return meet(read, write); });
      });
      if (makes) makers.push_back(product);
    }
    return makers;
  }

  const Plan& plan_;
  std::vector<std::int32_t> launches_;
  std::vector<std::vector<TaskId>> found_;
  std::map<QueueId, Products> last_;
};

}  // namespace

std::vector<std::vector<TaskId>> find_fused_stores(const Plan& plan) {
  return FusedStoreFinder(plan).find();
}

}  // namespace harpe
