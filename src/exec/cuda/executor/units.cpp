#include "exec/cuda/executor/units.h"

#include <algorithm>
#include <map>
#include <set>

#include "exec/cuda/actions/merge.h"
#include "exec/cuda/actions/relocate.h"
#include "exec/describe.h"

namespace harpe::cuda {
namespace {

// Left to kernels that must run beside one that waits for what they make.
constexpr int kSpared = 8;

bool is_copy(const LaunchSpec& launch) { return std::holds_alternative<CopyLaunch>(launch); }

class UnitMaker {
 public:
  UnitMaker(const Plan& plan, const Wiring& wiring, const Groups& groups,
            const std::vector<TaskSpecs>& specs, const WaitSource& waits)
      : plan_(plan), wiring_(wiring), groups_(groups), specs_(specs), waits_(waits) {}

  std::vector<UnitSpec> make(RankId rank) {
    const std::vector<TaskId>& sequence = wiring_.sequence[rank.index()];
    find_neighbours(sequence);
    for (const TaskId task : sequence) {
      if (done_.contains(task)) continue;
      UnitSpec unit = begin(task);
      finish_at_home(unit);
      done_.insert(unit.tasks.begin(), unit.tasks.end());
      units_.push_back(std::move(unit));
    }
    return std::move(units_);
  }

 private:
  [[nodiscard]] const TaskWiring& wiring_of(TaskId task) const {
    return wiring_.tasks[task.index()];
  }

  void find_neighbours(const std::vector<TaskId>& sequence) {
    std::map<LaneId, TaskId> last;
    for (const TaskId task : sequence) {
      const LaneId lane = plan_.tasks[task.index()].lane;
      if (const auto before = last.find(lane); before != last.end()) next_[before->second] = task;
      last[lane] = task;
    }
  }

  [[nodiscard]] UnitSpec begin(TaskId task) const {
    if (const int group = groups_.of(task); group >= 0) {
      std::optional<UnitSpec> merged =
          merge_group(groups_.members[static_cast<std::size_t>(group)]);
      if (merged) return *std::move(merged);
    }
    return {.tasks = {task}, .launches = specs_[task.index()].launches};
  }

  [[nodiscard]] std::optional<UnitSpec> merge_group(const std::vector<TaskId>& members) const {
    std::vector<ArrivingLaunch> launches;
    for (const TaskId task : members) {
      const std::vector<LaunchSpec>& own = specs_[task.index()].launches;
      const bool first = task == members.front();
      if (own.size() != 1 || (!first && !wiring_of(task).after.empty())) return std::nullopt;
      ArrivingLaunch launch{.spec = own.front()};
      const std::vector<std::int32_t>& words = wiring_of(task).waits;
      if (!words.empty()) launch.ready = waits_.words[static_cast<std::size_t>(words.front())];
      launches.push_back(std::move(launch));
    }
    device::WaitContext context = waits_.context;
    context.task = static_cast<std::uint32_t>(members.front().value);
    std::optional<LaunchSpec> merged = merge(launches, context);
    if (!merged) return std::nullopt;
    return UnitSpec{.tasks = members,
                    .launches = {*std::move(merged)},
                    .waits_inside = true,
                    .spared = needs_room(members) ? kSpared : 0};
  }

  // Whether anything but copy engines makes what the members wait for.
  [[nodiscard]] bool needs_room(const std::vector<TaskId>& members) const {
    const RankId rank = rank_of(plan_, members.front());
    for (const TaskId task : members) {
      for (const std::int32_t word : wiring_of(task).waits) {
        const std::vector<Word>& page = wiring_.pages[rank.index()];
        for (const TaskId producer : page[static_cast<std::size_t>(word)].producers) {
          if (!std::ranges::all_of(specs_[producer.index()].launches, is_copy)) return true;
        }
      }
    }
    return false;
  }

  // A Finalise right behind, of nothing but what the unit has made.
  void finish_at_home(UnitSpec& unit) const {
    const Task& last = plan_.tasks[unit.tasks.back().index()];
    const auto next = next_.find(unit.tasks.back());
    if (last.kind != TaskKind::Compute || next == next_.end()) return;
    const TaskId finalise = next->second;
    const Task& task = plan_.tasks[finalise.index()];
    const TaskWiring& wiring = wiring_of(finalise);
    const bool fits = task.kind == TaskKind::Finalise && task.reads.size() == task.writes.size() &&
                      wiring.waits.empty() && wiring.after.empty() &&
                      std::ranges::all_of(task.reads, [&](const Ref& ref) {
                        return is_only(ref.alloc, unit, finalise);
                      });
    if (!fits || !relocate(unit.launches, specs_[finalise.index()].actions)) return;
    unit.tasks.push_back(finalise);
  }

  // Nobody but the unit and the task behind has to do with the allocation.
  [[nodiscard]] bool is_only(AllocId alloc, const UnitSpec& unit, TaskId finalise) const {
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      const TaskId task(static_cast<std::int64_t>(i));
      if (task == finalise || std::ranges::find(unit.tasks, task) != unit.tasks.end()) continue;
      const auto names = [&](const Ref& ref) { return ref.alloc == alloc; };
      if (std::ranges::any_of(plan_.tasks[i].reads, names) ||
          std::ranges::any_of(plan_.tasks[i].writes, names)) {
        return false;
      }
    }
    return true;
  }

  const Plan& plan_;
  const Wiring& wiring_;
  const Groups& groups_;
  const std::vector<TaskSpecs>& specs_;
  const WaitSource& waits_;
  std::map<TaskId, TaskId> next_;  // of the same lane
  std::set<TaskId> done_;
  std::vector<UnitSpec> units_;
};

}  // namespace

std::vector<UnitSpec> make_units(const Plan& plan, const Wiring& wiring, const Groups& groups,
                                 RankId rank, const std::vector<TaskSpecs>& specs,
                                 const WaitSource& waits) {
  return UnitMaker(plan, wiring, groups, specs, waits).make(rank);
}

}  // namespace harpe::cuda
