#include "tests/property/launches/launch_facts.h"

#include <algorithm>
#include <optional>

namespace harpe::test {
namespace {

using launch::Arrival;
using launch::Kernel;
using launch::LaunchPlan;
using launch::Panel;
using launch::Place;
using launch::SignalId;

// True if a task adds to the state, or reads it without rounding it to bf16 at once.
bool has_wide_reader(const Plan& plan, AllocId alloc) {
  return std::ranges::any_of(plan.tasks, [&](const Task& task) {
    const auto is_it = [&](const Ref& ref) { return ref.alloc == alloc; };
    const bool adds = std::ranges::any_of(
        task.writes, [&](const Ref& ref) { return is_it(ref) && ref.mode == WriteMode::Add; });
    if (adds) return true;
    if (std::ranges::none_of(task.reads, is_it)) return false;
    const bool moves =
        task.kind == TaskKind::Copy ||
        (task.kind == TaskKind::Collective && task.collective != CollectiveOp::ReduceScatter);
    const bool rounds_alone = (moves || task.kind == TaskKind::Finalise) &&
                              task.reads.size() == task.writes.size() &&
                              std::ranges::all_of(task.writes, [&](const Ref& ref) {
                                return plan.allocs[ref.alloc.index()].dtype == DType::BF16;
                              });
    return !rounds_alone;
  });
}

}  // namespace

std::vector<bool> find_awaited(const LaunchPlan& launches) {
  std::vector<bool> is_awaited(launches.signals.size(), false);
  const auto note = [&](const std::optional<SignalId>& signal) {
    if (signal) is_awaited[signal->index()] = true;
  };
  for (const launch::Launch& each : launches.launches) {
    for (const SignalId signal : each.awaits) note(signal);
    note(each.all_ready);
    note(each.all_pulled);
    for (const Kernel& own : each.kernels) {
      for (const Arrival& arrival : own.arrivals) note(arrival.when);
      for (const Panel& panel : own.panels) {
        for (const launch::Addend& addend : panel.addends) note(addend.when);
      }
    }
  }
  return is_awaited;
}

std::vector<AllocId> find_states(const Plan& plan, const LaunchPlan& launches) {
  std::vector<bool> is_touched(plan.allocs.size(), false);
  const auto note = [&](AllocId id) {
    if (id.index() < is_touched.size()) is_touched[id.index()] = true;
  };
  for (const launch::Launch& each : launches.launches) {
    bool has_panels = false;
    for (const Kernel& own : each.kernels) {
      has_panels = has_panels || !own.panels.empty();
      for (const Panel& panel : own.panels) {
        for (const Place& place : panel.stores) note(place.alloc);
        for (const Place& place : panel.reads) note(place.alloc);
      }
    }
    if (has_panels || each.is_skipped) continue;
    for (const TaskId id : each.does) {
      for (const Ref& ref : plan.tasks[id.index()].writes) note(ref.alloc);
    }
  }
  std::vector<AllocId> states;
  for (std::size_t id = 0; id < plan.allocs.size(); ++id) {
    const Alloc& own = plan.allocs[id];
    const bool is_state = own.level == Level::Acc || own.level == Level::Sum;
    const bool ends_narrow = find_buffer(plan.program, own.buffer)->dtype == DType::BF16;
    const AllocId alloc(static_cast<std::int64_t>(id));
    if (is_touched[id] && is_state && ends_narrow && has_wide_reader(plan, alloc)) {
      states.push_back(alloc);
    }
  }
  return states;
}

std::vector<bool> find_fit_for_data(const LaunchPlan& launches) {
  std::vector<bool> is_fit(launches.signals.size(), false);
  LaunchPlan others = launches;  // without the parts that may use signals in data
  for_each_kernel(others, [&](auto&, Kernel& own) {
    for (const launch::Raise& raise : own.fused_stores) is_fit[raise.signal.index()] = true;
    for (Panel& panel : own.panels) panel.addends.clear();
  });
  const std::vector<bool> by_addends = find_awaited(launches);
  const std::vector<bool> by_others = find_awaited(others);
  for (std::size_t id = 0; id < is_fit.size(); ++id) {
    is_fit[id] = is_fit[id] && by_addends[id] && !by_others[id];
  }
  return is_fit;
}

void carry_in_data(LaunchPlan& launches) {
  const std::vector<bool> is_fit = find_fit_for_data(launches);
  for (std::size_t id = 0; id < is_fit.size(); ++id) launches.signals[id].is_in_data = is_fit[id];
}

bool touches(const Plan& plan, const launch::Launch& launch) {
  return std::ranges::any_of(launch.does,
                             [&](TaskId id) { return !plan.tasks[id.index()].writes.empty(); });
}

bool needs_kernel(const Plan& plan, const launch::Launch& launch) {
  return std::ranges::any_of(launch.does, [&](TaskId id) {
    const Task& task = plan.tasks[id.index()];
    if (task.kind != TaskKind::Copy) return task.kind == TaskKind::Compute;
    return plan.allocs[task.reads.front().alloc.index()].rank != launch.rank;
  });
}

bool any_kernel(const launch::LaunchPlan& launches, const KernelTest& test) {
  return std::ranges::any_of(launches.launches, [&](const launch::Launch& each) {
    return std::ranges::any_of(each.kernels,
                               [&](const launch::Kernel& own) { return test(each, own); });
  });
}

void for_each_kernel(launch::LaunchPlan& launches,
                     const std::function<void(launch::Launch&, launch::Kernel&)>& edit) {
  for (launch::Launch& each : launches.launches) {
    for (launch::Kernel& own : each.kernels) edit(each, own);
  }
}

}  // namespace harpe::test
