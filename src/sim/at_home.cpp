#include "sim/at_home.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/program.h"
#include "plan/refs.h"
#include "plan/work.h"
#include "sim/launches.h"

namespace harpe {
namespace {

class HomeFinder {
 public:
  HomeFinder(const Plan& plan, const std::vector<std::vector<TaskId>>& fused_stores)
      : plan_(plan), fused_stores_(fused_stores), launches_(find_launches(plan)), work_(plan) {
    found_.rounded.resize(plan.tasks.size(), 0);
    found_.added.resize(plan.tasks.size(), 0);
    found_.written.resize(plan.tasks.size(), 1);
    touched_by_.resize(plan.allocs.size());
    waits_.resize(plan.tasks.size(), 0);
    for (const Sync& sync : plan.syncs) waits_[sync.to.index()] = 1;
    for (const Barrier& barrier : plan.barriers) {
      for (const TaskId to : barrier.to) waits_[to.index()] = 1;
    }
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) note(i);
  }

  AtHome find() {
    std::map<QueueId, std::vector<std::size_t>> queues;
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      std::vector<std::size_t>& before = queues[plan_.tasks[i].queue];
      if (plan_.tasks[i].kind == TaskKind::Finalise && rounds(plan_.tasks[i])) {
        look_behind(i, before);
      }
      before.push_back(i);
    }
    return std::move(found_);
  }

 private:
  // Who has to do with an allocation: one queue alone, and who of it last.
  struct Touch {
    std::optional<QueueId> queue;
    bool is_shared = false;
    std::size_t last = 0;
  };

  void note(std::size_t at) {
    const Task& task = plan_.tasks[at];
    if (task.kind == TaskKind::Entry || task.kind == TaskKind::Exit) return;
    const auto touch = [&](const Ref& ref) {
      Touch& by = touched_by_[ref.alloc.index()];
      by.is_shared = by.is_shared || (by.queue && *by.queue != task.queue);
      by.queue = task.queue;
      by.last = at;
    };
    for (const Ref& ref : task.reads) touch(ref);
    for (const Ref& ref : task.writes) touch(ref);
  }

  [[nodiscard]] const Alloc& alloc_of(const Ref& ref) const {
    return plan_.allocs[ref.alloc.index()];
  }

  // The states' type: of several sources that of this rank's own.
  [[nodiscard]] std::int64_t state_size(const Task& finalise) const {
    std::int64_t size = 0;
    for (const Ref& read : finalise.reads) {
      size = std::max(size, size_in_bytes(alloc_of(read).dtype));
    }
    return size;
  }

  // Into a type of fewer bytes: kernels for others do nothing besides.
  [[nodiscard]] bool rounds(const Task& finalise) const {
    return size_in_bytes(alloc_of(finalise.writes.front()).dtype) < state_size(finalise);
  }

  void look_behind(std::size_t finalise, const std::vector<std::size_t>& before) {
    if (before.empty()) return;
    std::size_t at = before.size() - 1;
    while (at > 0 && !fused_stores_[before[at]].empty()) --at;
    const bool sends = at + 1 < before.size();
    const Task& last = plan_.tasks[before[at]];
    if (last.kind != TaskKind::Compute || last.kernel < 0) return;
    std::vector<std::size_t> launch;  // tasks
    for (std::size_t i = at + 1; i-- > 0 && launches_[before[i]] == launches_[before[at]];) {
      launch.push_back(before[i]);
    }
    if (sends) {
      leave(launch, finalise);
    } else {
      stay(launch, finalise);
    }
  }

  // Has one source, which the launch makes whole.
  void stay(const std::vector<std::size_t>& launch, std::size_t finalise) {
    const Task& task = plan_.tasks[finalise];
    if (task.reads.size() != task.writes.size() || waits_[finalise] != 0) return;
    if (!has_heads(plan_.tasks[launch.front()]) && begins_from_sums(launch)) return;
    for (const Ref& read : task.reads) {
      const Touch& by = touched_by_[read.alloc.index()];
      if (by.is_shared || by.last != finalise || !makes_whole(launch, read)) return;
    }
    found_.rounded[finalise] = 1;
    for (const std::size_t at : launch) found_.written[at] = share_of(task);
  }

  // Some blocks of the launch's sums have left; those that stay are summed up with what came.
  void leave(const std::vector<std::size_t>& launch, std::size_t finalise) {
    const Task& task = plan_.tasks[finalise];
    std::size_t own = 0;
    for (const Ref& read : task.reads) {
      const Level level = alloc_of(read).level;
      own += level == Level::Acc && makes_whole(launch, read) ? 1 : 0;
      if (level != Level::Acc && level != Level::Inbox) return;
    }
    if (own != task.writes.size()) return;
    found_.rounded[finalise] = found_.added[finalise] = 1;
    for (const std::size_t at : launch) {
      const Ref& target = plan_.tasks[at].writes.front();
      const bool stays =
          std::ranges::any_of(task.reads, [&](const Ref& read) { return meet(read, target); });
      found_.written[at] = stays ? share_of(task) : 0;
    }
  }

  // Of the states' bytes those of the home that they are rounded into.
  [[nodiscard]] double share_of(const Task& finalise) const {
    return static_cast<double>(size_in_bytes(alloc_of(finalise.writes.front()).dtype)) /
           static_cast<double>(state_size(finalise));
  }

  [[nodiscard]] bool has_heads(const Task& task) const {
    const Nest* const nest = find_nest(plan_.program, task.nest);
    return is_leaf(nest->stmts[static_cast<std::size_t>(task.stmt)].leaf, Leaf::AttentionForward);
  }

  [[nodiscard]] bool begins_from_sums(const std::vector<std::size_t>& launch) const {
    return plan_.tasks[launch.back()].writes.front().mode == WriteMode::Add;
  }

  [[nodiscard]] bool makes_whole(const std::vector<std::size_t>& launch, const Ref& read) const {
    double made = 0;
    std::vector<const Ref*> known;
    for (const std::size_t at : launch) {
      for (const Ref& write : plan_.tasks[at].writes) {
        if (write.alloc != read.alloc || !meet(write, read)) continue;
        const bool again =
            std::ranges::any_of(known, [&](const Ref* each) { return each->boxes == write.boxes; });
        if (again) continue;
        known.push_back(&write);
        made += work_.bytes_of(write);
      }
    }
    return made >= work_.bytes_of(read);
  }

  const Plan& plan_;
  const std::vector<std::vector<TaskId>>& fused_stores_;
  std::vector<std::int32_t> launches_;
  PlanWork work_;
  std::vector<Touch> touched_by_;  // per allocation
  std::vector<char> waits_;        // per task: for others than its queue
  AtHome found_;
};

}  // namespace

AtHome find_at_home(const Plan& plan, const std::vector<std::vector<TaskId>>& fused_stores) {
  return HomeFinder(plan, fused_stores).find();
}

}  // namespace harpe
