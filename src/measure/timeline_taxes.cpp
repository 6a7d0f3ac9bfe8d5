#include "measure/timeline_taxes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "exec/describe.h"
#include "exec/kernel_times.h"
#include "sim/plan_waits.h"
#include "support/check.h"
#include "support/measured_time.h"

namespace harpe {
namespace {

using std::chrono::nanoseconds;

PathPart part_of(const Task& task) {
  switch (task.kind) {
    case TaskKind::Entry:
    case TaskKind::Exit:
      return PathPart::Launch;
    case TaskKind::Compute:
      return PathPart::Compute;
    case TaskKind::Collective:
      return PathPart::Transfer;
    case TaskKind::Copy:
      return task.bytes > 0 ? PathPart::Transfer : PathPart::Local;
    case TaskKind::Init:
    case TaskKind::Pack:
    case TaskKind::Unpack:
    case TaskKind::Fold:
    case TaskKind::Finalise:
      return PathPart::Local;
  }
  return PathPart::Launch;
}

PathPart part_of(WaitKind kind) {
  return kind == WaitKind::Queue || kind == WaitKind::Event ? PathPart::Launch : PathPart::Signal;
}

// Why a task began when it did: another task was over at `end`.
struct Cause {
  TaskId task;  // none: it has no predecessor
  WaitKind kind = WaitKind::Queue;
  nanoseconds end{0};
};

class Walk {
 public:
  Walk(const Plan& plan, std::span<const TraceEvent> events, std::span<const KernelEvent> kernels)
      : plan_(plan),
        events_(events),
        kernels_(times_of(kernels)),
        waits_(waits_of(plan)),
        seen_(plan.tasks.size(), false) {
    for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
      const Task& task = plan.tasks[i];
      const TaskId id(static_cast<std::int64_t>(i));
      if (task.kind == TaskKind::Entry) entries_[rank_of(plan, id)] = id;
      if (task.kind == TaskKind::Collective) members_[task.group].push_back(id);
      queues_[task.queue].push_back(id);
      if (event_of(id).kernel.valid()) members_of_[event_of(id).kernel].push_back(id);
    }
  }

  std::vector<PathStretch> back_from_the_end() {
    const auto order = [](const TraceEvent& event) { return std::tuple(event.end, event.start); };
    TaskId at = std::ranges::max(events_, {}, order).task;
    nanoseconds until = event_of(at).end;
    // Clocks that are not synchronised could lead to a cycle.
    while (at.valid() && !seen_[at.index()]) {
      const auto kernel = kernels_.find(event_of(at).kernel);
      const Cause cause = kernel == kernels_.end() ? through_task(at, until)
                                                   : through_kernel(at, kernel->second, until);
      at = cause.task;
      until = cause.end;
    }
    std::ranges::reverse(path_);
    return std::move(path_);
  }

 private:
  [[nodiscard]] const TraceEvent& event_of(TaskId task) const { return events_[task.index()]; }

  void add(TaskId task, PathPart part, nanoseconds begin, nanoseconds end) {
    if (begin < end) path_.push_back({.task = task, .part = part, .begin = begin, .end = end});
  }

  // Adds the task to the path, and returns its cause with the time until which that is on the path.
  Cause through_task(TaskId at, nanoseconds until) {
    seen_[at.index()] = true;
    nanoseconds start = std::min(event_of(at).start, until);
    add(at, part_of(plan_.tasks[at.index()]), start, until);
    const TaskId last = last_to_come(at);
    if (last != at) {
      const nanoseconds came = std::min(cause_of(last).end, start);
      add(at, PathPart::Signal, came, start);
      start = came;
    }
    return begun_behind(cause_of(last), last, start);
  }

  // The same for all tasks of a kernel.
  Cause through_kernel(TaskId at, const KernelTimes& kernel, nanoseconds until) {
    const std::vector<TaskId>& members = members_of_.at(event_of(at).kernel);
    for (const TaskId member : members) seen_[member.index()] = true;
    const nanoseconds end = std::min(kernel.end, until);
    const nanoseconds begin = std::min(kernel.begin, end);
    const nanoseconds launched = std::min(kernel.launched, begin);
    const nanoseconds reached = std::min(kernel.reached, launched);
    add(at, PathPart::Launch, end, until);
    if (begin < end) {
      path_.push_back({.task = at,
                       .part = PathPart::Kernel,
                       .begin = begin,
                       .end = end,
                       .stood = stood_within(kernel, begin, end),
                       .moved = moved_within(members, begin, end)});
    }
    add(at, PathPart::Launch, launched, begin);
    const Cause cause = cause_of_kernel(members, launched);
    // If the cause ended after the rank's queue had reached the kernel, the own rank delayed it;
    // otherwise other ranks did.
    const nanoseconds start = cause.end > reached ? launched : reached;
    add(at, PathPart::Signal, start, launched);
    return begun_behind(cause, at, start);
  }

  Cause begun_behind(Cause cause, TaskId task, nanoseconds start) {
    cause.end = cause.task.valid() ? std::min(cause.end, start) : start;
    add(task, part_of(cause.kind), cause.end, start);
    return cause;
  }

  // The last event on its own rank that the kernel begins behind; it waits for other ranks inside.
  [[nodiscard]] Cause cause_of_kernel(const std::vector<TaskId>& members, nanoseconds start) const {
    Cause latest{.task = entries_.at(rank_of(plan_, members.front())), .kind = WaitKind::Event};
    latest.end = std::min(event_of(latest.task).end, start);
    for (const TaskId member : members) {
      for (const auto& [from, kind] : waits_[member.index()]) {
        const bool is_own = event_of(from).kernel == event_of(member).kernel;
        if (part_of(kind) != PathPart::Launch || is_own) continue;
        const nanoseconds end = event_of(from).end;
        if (end <= start && end > latest.end) latest = {from, kind, end};
      }
    }
    return latest;
  }

  // For how much of [begin, end) at least one transfer was in flight that belongs to the kernel, or
  // that one of its tasks waits for.
  [[nodiscard]] nanoseconds moved_within(const std::vector<TaskId>& members, nanoseconds begin,
                                         nanoseconds end) const {
    std::vector<std::pair<nanoseconds, nanoseconds>> spans;
    const auto note = [&](TaskId task) {
      if (part_of(plan_.tasks[task.index()]) != PathPart::Transfer) return;
      spans.emplace_back(event_of(task).start, event_of(task).end);
    };
    for (const TaskId member : members) {
      note(member);
      for (const auto& [from, kind] : waits_[member.index()]) note(from);
    }
    std::ranges::sort(spans);
    nanoseconds sum{0};
    for (const auto& [from, to] : spans) {
      const nanoseconds last = std::min(to, end);
      sum += std::max(nanoseconds(0), last - std::max(from, begin));
      begin = std::max(begin, last);
    }
    return sum;
  }

  // For a collective, the member that all others waited for; else the task.
  [[nodiscard]] TaskId last_to_come(TaskId task) const {
    const Task& one = plan_.tasks[task.index()];
    if (one.kind != TaskKind::Collective) return task;
    return std::ranges::max(members_.at(one.group), {},
                            [&](TaskId member) { return cause_of(member).end; });
  }

  // The kernel's task that was running in the queue when this task's part of it began.
  [[nodiscard]] std::optional<TaskId> beside(TaskId task) const {
    const auto began = [&](TaskId id) { return std::tuple(event_of(id).start, id); };
    std::optional<TaskId> latest;
    for (const TaskId other : queues_.at(plan_.tasks[task.index()].queue)) {
      const bool was_at_work =
          began(other) < began(task) && event_of(other).end > event_of(task).start;
      if (was_at_work && (!latest || began(*latest) < began(other))) latest = other;
    }
    return latest;
  }

  [[nodiscard]] Cause cause_of(TaskId task) const {
    const nanoseconds start = event_of(task).start;
    const std::optional<TaskId> fellow = beside(task);
    if (fellow && event_of(task).waited == nanoseconds(0)) return {.task = *fellow, .end = start};
    Cause latest;
    for (const auto& [from, kind] : waits_[task.index()]) {
      if (fellow && kind == WaitKind::Queue) continue;
      const nanoseconds end = std::min(event_of(from).end, start);
      if (!latest.task.valid() || end > latest.end) latest = {from, kind, end};
    }
    if (latest.task.valid() || plan_.tasks[task.index()].kind == TaskKind::Entry) return latest;
    const TaskId entry = entries_.at(rank_of(plan_, task));
    return {.task = entry, .kind = WaitKind::Event, .end = std::min(event_of(entry).end, start)};
  }

  const Plan& plan_;
  std::span<const TraceEvent> events_;
  std::map<TaskId, KernelTimes> kernels_;
  std::map<TaskId, std::vector<TaskId>> members_of_;  // by kernel
  std::vector<std::vector<PlanWait>> waits_;
  std::vector<bool> seen_;
  std::map<RankId, TaskId> entries_;
  std::map<std::int32_t, std::vector<TaskId>> members_;  // by collective
  std::map<QueueId, std::vector<TaskId>> queues_;
  std::vector<PathStretch> path_;  // in reverse order
};

bool is_of_links(ResourceKind kind) {
  return kind != ResourceKind::Sm && kind != ResourceKind::Memory;
}

}  // namespace

std::vector<PathStretch> measured_path(const Plan& plan, std::span<const TraceEvent> events,
                                       std::span<const KernelEvent> kernels) {
  HP_CHECK(events.size() == plan.tasks.size() && !events.empty(), "an event of every task");
  return Walk(plan, events, kernels).back_from_the_end();
}

Taxes measured_taxes(std::span<const PathStretch> path, nanoseconds total, const Taxes& predicted) {
  const bool is_by_links = is_of_links(predicted.bound.kind);
  const PathPart hidden = is_by_links ? PathPart::Compute : PathPart::Transfer;
  std::map<PathPart, Picoseconds> sums;
  Picoseconds whole;
  for (const PathStretch& stretch : path) {
    const Picoseconds took = picoseconds(stretch.end - stretch.begin);
    sums[stretch.part] = sums[stretch.part] + took;
    whole = whole + took;
    if (stretch.part != PathPart::Kernel) continue;
    const Picoseconds missed =
        is_by_links ? took - picoseconds(stretch.moved) : picoseconds(stretch.stood);
    sums[PathPart::Signal] = sums[PathPart::Signal] + missed;
  }
  Taxes taxes;
  taxes.total = picoseconds(total);
  taxes.bound = predicted.bound;
  // Timestamps add time between tasks. An execution also takes time before its first task and
  // behind its last.
  Picoseconds rest = taxes.total;
  const auto take = [&](Picoseconds part) {
    const Picoseconds taken = std::clamp(part, Picoseconds(), rest);
    rest = rest - taken;
    return taken;
  };
  taxes.launch = take(sums[PathPart::Launch] + taxes.total - whole);
  taxes.synchronization = take(sums[PathPart::Signal] + sums[hidden]);
  taxes.locality = take(sums[PathPart::Local]);
  taxes.roofline = take(predicted.roofline);
  taxes.residual = rest;
  return taxes;
}

}  // namespace harpe
