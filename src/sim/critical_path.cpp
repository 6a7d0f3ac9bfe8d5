#include "sim/critical_path.h"

#include <algorithm>

namespace harpe {
namespace {

bool belongs_to_a_signal(ActivityRole role) {
  return role == ActivityRole::Post || role == ActivityRole::Fence ||
         role == ActivityRole::Signal || role == ActivityRole::Order || role == ActivityRole::Count;
}

class Walker {
 public:
  Walker(const Plan& plan, const Machine& machine, const BuiltWorkload& built, const EngineRun& run)
      : plan_(plan), machine_(machine), built_(built), run_(run) {}

  std::vector<Segment> run() {
    const auto last = std::ranges::max_element(run_.spans, {}, &Span::end);
    if (last == run_.spans.end()) return {};
    auto at = static_cast<std::int32_t>(last - run_.spans.begin());
    TaskId waiting;  // the task that a Join waits for
    while (at >= 0) {
      const Span& span = run_.spans[static_cast<std::size_t>(at)];
      const TaskId own = built_.of[static_cast<std::size_t>(at)].task;
      if (own.valid()) waiting = own;
      add(span.begin, span.end, spending(at), waiting, describe(at));
      add(span.ready, span.begin, Spending::Launch, waiting, "start of " + name(waiting));
      const Picoseconds before =
          span.cause < 0 ? Picoseconds() : run_.spans[static_cast<std::size_t>(span.cause)].end;
      add(before, span.ready, spending_of(span.kind), waiting,
          waits_for(span.kind) + name(waiting));
      at = span.cause;
    }
    std::ranges::reverse(path_);
    return std::move(path_);
  }

 private:
  void add(Picoseconds begin, Picoseconds end, Spending spending, TaskId task, std::string what) {
    if (begin == end) return;
    if (!path_.empty() && path_.back().task == task && path_.back().what == what) {
      path_.back().begin = begin;
      return;
    }
    path_.push_back({spending, begin, end, task, std::move(what)});
  }

  // The cause of the time between the end of what an activity waited for and its readiness.
  [[nodiscard]] static Spending spending_of(WaitKind kind) {
    if (kind == WaitKind::Queue) return Spending::Compute;
    return kind == WaitKind::Barrier ? Spending::Barrier : Spending::Signal;
  }
  [[nodiscard]] static std::string waits_for(WaitKind kind) {
    if (kind == WaitKind::Queue) return "whole tiles before ";
    if (kind == WaitKind::Barrier) return "barrier before ";
    return kind == WaitKind::Signal ? "signal to " : "event before ";
  }

  [[nodiscard]] std::string name(TaskId id) const {
    if (!id.valid()) return "the end";
    const Task& task = plan_.tasks[id.index()];
    std::string text(print(task.kind));
    if (!task.nest.empty()) text += " " + task.nest;
    return text + ", rank " + std::to_string(plan_.queues[task.queue.index()].rank.value);
  }

  // The resource that determined its speed: the one that limited it, or the one it uses most of.
  [[nodiscard]] const Resource* pace(std::int32_t at) const {
    const Span& span = run_.spans[static_cast<std::size_t>(at)];
    const auto& resources = built_.workload.resources;
    if (span.bound >= 0) return &resources[static_cast<std::size_t>(span.bound)];
    const Activity& activity = built_.workload.activities[static_cast<std::size_t>(at)];
    const Resource* most = nullptr;
    double share = 0;
    for (const Use& use : activity.uses) {
      const Resource& resource = resources[static_cast<std::size_t>(use.resource)];
      if (use.rate / resource.capacity <= share) continue;
      share = use.rate / resource.capacity;
      most = &resource;
    }
    return most;
  }

  [[nodiscard]] Spending spending(std::int32_t at) const {
    const BuiltActivity& of = built_.of[static_cast<std::size_t>(at)];
    if (of.role == ActivityRole::Issue) return Spending::Launch;
    if (belongs_to_a_signal(of.role)) return Spending::Message;
    if (!of.task.valid()) return Spending::Signal;
    switch (plan_.tasks[of.task.index()].kind) {
      case TaskKind::Entry:
      case TaskKind::Exit:
        return Spending::Launch;
      case TaskKind::Init:
      case TaskKind::Fold:
      case TaskKind::Finalise:
      case TaskKind::Pack:
      case TaskKind::Unpack:
        return Spending::Fold;
      case TaskKind::Compute:
      case TaskKind::Copy:
      case TaskKind::Collective:
        break;
    }
    return by_resource(at, plan_.tasks[of.task.index()].kind == TaskKind::Compute);
  }

  [[nodiscard]] Spending by_resource(std::int32_t at, bool computes) const {
    const Resource* const resource = pace(at);
    if (resource == nullptr) return computes ? Spending::Compute : Spending::Link;
    switch (resource->kind) {
      case ResourceKind::Sm:
        return computes ? Spending::Compute : Spending::Link;
      case ResourceKind::Memory:
        return Spending::Memory;
      case ResourceKind::Message:
      case ResourceKind::Proxy:
        return Spending::Message;
      case ResourceKind::Egress:
      case ResourceKind::Ingress:
      case ResourceKind::Bus:
        break;
    }
    return Spending::Link;
  }

  [[nodiscard]] std::string describe(std::int32_t at) const {
    const BuiltActivity& of = built_.of[static_cast<std::size_t>(at)];
    std::string text = name(of.task);
    if (of.role == ActivityRole::Post) return "post of " + text;
    if (of.role == ActivityRole::Fence) return "fence behind " + text;
    if (of.role == ActivityRole::Signal) return "word behind " + text;
    if (of.role == ActivityRole::Order) return "words held back behind " + text;
    if (of.role == ActivityRole::Count) return "count of " + text;
    if (of.role == ActivityRole::Issue) return "launch of " + text;
    if (const Resource* const resource = pace(at)) {
      if (resource->kind != ResourceKind::Sm) text += ": " + name_of(machine_, *resource);
    }
    return text;
  }

  const Plan& plan_;
  const Machine& machine_;
  const BuiltWorkload& built_;
  const EngineRun& run_;
  std::vector<Segment> path_;
};

// Time in which a rank's SMs wait, or copy between ranks themselves.
class Exposure {
 public:
  Exposure(const Plan& plan, const BuiltWorkload& built, const EngineRun& run)
      : plan_(plan), built_(built), run_(run) {
    const auto ranks = static_cast<std::size_t>(plan.mesh.ranks());
    exposed_.resize(ranks);
    free_.resize(ranks);
  }

  Picoseconds worst() {
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) add(i);
    return exposed_.empty() ? Picoseconds() : *std::ranges::max_element(exposed_);
  }

 private:
  [[nodiscard]] const Span& span(const std::vector<std::int32_t>& of, std::size_t task) const {
    return run_.spans[static_cast<std::size_t>(of[task])];
  }

  void add(std::size_t i) {
    const Task& task = plan_.tasks[i];
    const Queue& queue = plan_.queues[task.queue.index()];
    Picoseconds& exposed = exposed_[queue.rank.index()];
    Picoseconds& free = free_[queue.rank.index()];
    const Span& first = span(built_.first_of_task, i);
    const Picoseconds end = span(built_.work_of_task, i).end;
    if (task.kind == TaskKind::Entry) {
      free = end;
    } else if (task.kind == TaskKind::Exit) {
      exposed += std::max(Picoseconds(), first.ready - free);
    } else if (queue.kind == QueueKind::Sm) {
      const bool issued =
          first.cause >= 0 &&
          built_.of[static_cast<std::size_t>(first.cause)].role == ActivityRole::Issue;
      if (!issued) exposed += std::max(Picoseconds(), first.ready - free);
      if (task.kind == TaskKind::Copy && task.bytes > 0) exposed += end - first.ready;
      free = end;
    }
  }

  const Plan& plan_;
  const BuiltWorkload& built_;
  const EngineRun& run_;
  std::vector<Picoseconds> exposed_;  // per rank
  std::vector<Picoseconds> free_;     // per rank: when its SMs became free
};

}  // namespace

std::string name_of(const Machine& machine, const Resource& resource) {
  const std::string rank = "rank " + std::to_string(resource.rank);
  const std::string level =
      machine.levels.empty() ? "" : machine.levels[static_cast<std::size_t>(resource.level)].name;
  switch (resource.kind) {
    case ResourceKind::Sm:
      return rank + " SMs";
    case ResourceKind::Memory:
      return rank + " memory";
    case ResourceKind::Egress:
      return rank + " " + level + " out";
    case ResourceKind::Ingress:
      return rank + " " + level + " in";
    case ResourceKind::Message:
      return rank + " " + level + " messages";
    case ResourceKind::Proxy:
      return rank + " " + level + " proxy";
    case ResourceKind::Bus:
      return level + " of " + rank;
  }
  return rank;
}

std::vector<Segment> critical_path(const Plan& plan, const Machine& machine,
                                   const BuiltWorkload& built, const EngineRun& run) {
  return Walker(plan, machine, built, run).run();
}

Picoseconds exposed_communication(const Plan& plan, const BuiltWorkload& built,
                                  const EngineRun& run) {
  return Exposure(plan, built, run).worst();
}

}  // namespace harpe
