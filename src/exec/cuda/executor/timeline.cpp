#include "exec/cuda/executor/timeline.h"

#include <algorithm>

namespace harpe::cuda {
namespace {

using std::chrono::nanoseconds;

std::int64_t signed_of(std::uint64_t time) { return static_cast<std::int64_t>(time); }

// A launch's own period, by its GPU's clock.
struct Stretch {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t waited = 0;
};

Stretch stretch_of(const PreparedLaunch& launch, const LaunchTimes& times, std::int64_t stamp) {
  Stretch stretch;
  const std::int64_t begin = signed_of(times.start);
  stretch.start = stretch.end = begin;
  if (times.end != device::kNever) {
    // Work begins one launch behind its first timestamp, and ends one before its last.
    const std::int64_t apart = launch.work.size() > 0 ? stamp : 0;
    const std::int64_t end = signed_of(times.end) - apart;
    stretch.start = std::min(begin + apart, std::max(begin, end));
    stretch.end = std::max(stretch.start, end);
  }
  if (times.reached != device::kNever) {
    stretch.waited = std::max<std::int64_t>(0, begin - signed_of(times.reached) - stamp);
  }
  return stretch;
}

// For a task of a kernel that waits inside.
Stretch stretch_of(const Stretch& launch, const device::Sighting& sighting) {
  if (sighting.seen_ns == device::kNever) return launch;
  Stretch stretch = launch;
  stretch.start = std::clamp(signed_of(sighting.seen_ns), launch.start, launch.end);
  if (sighting.awaited_ns == device::kNever || stretch.start == launch.start) return stretch;
  stretch.waited = std::max<std::int64_t>(
      0, stretch.start - std::max(launch.start, signed_of(sighting.awaited_ns)));
  return stretch;
}

// Whether the task waits for the signal.
bool is_for(const Plan& plan, const launch::Signal& signal, TaskId task) {
  const auto index = static_cast<std::size_t>(signal.index);
  if (signal.kind == launch::SignalKind::Sync) return plan.syncs[index].to == task;
  if (signal.kind != launch::SignalKind::Barrier) return false;
  const std::vector<TaskId>& to = plan.barriers[index].to;
  return std::ranges::find(to, task) != to.end();
}

// The signal that a kernel of the launch awaits inside for the task.
std::optional<launch::SignalId> inner_signal(const TracedLaunches& rank,
                                             const launch::Launch& launch, TaskId task) {
  for (const launch::Kernel& kernel : launch.kernels) {
    for (const launch::Arrival& arrival : kernel.arrivals) {
      if (arrival.when && is_for(rank.plan, rank.pages[*arrival.when], task)) return arrival.when;
    }
  }
  return std::nullopt;
}

// Appends the events of a block.
void add_block(KernelEvent event, const device::BlockNotes& notes, const ClockFit& clock,
               std::vector<KernelEvent>& events) {
  event.copies = notes.copies != 0;
  const auto add = [&](KernelPart part, std::uint64_t start, std::uint64_t end) {
    event.part = part;
    event.start = nanoseconds(clock.to_host(signed_of(start)));
    event.end = std::max(event.start, nanoseconds(clock.to_host(signed_of(end))));
    events.push_back(event);
  };
  add(KernelPart::Work, notes.begin_ns, notes.end_ns);
  for (std::uint32_t i = 0; i < notes.stand_count; ++i) {
    add(KernelPart::Stand, notes.stands[i].since_ns, notes.stands[i].until_ns);
  }
}

}  // namespace

std::vector<TraceEvent> events_of(const TracedLaunches& rank, const RankTimes& times,
                                  const ClockFit& clock) {
  std::vector<TraceEvent> events;
  for (std::size_t i = 0; i < rank.launches.size(); ++i) {
    const launch::Launch& launch = rank.launch_plan.launches[rank.launches[i].id.index()];
    if (launch.lands) continue;  // of a put of another rank
    const Stretch whole = stretch_of(rank.launches[i], times.launches[i], times.stamp_ns);
    const TaskId first = launch.does.front();
    const bool is_noted = times.notes.contains(first);
    for (const TaskId task : launch.does) {
      Stretch own = whole;
      if (task != first) own.waited = 0;
      const auto signal = inner_signal(rank, launch, task);
      if (task != first && rank.plan.tasks[task.index()].kind == TaskKind::Finalise) {
        own.start = whole.end;
      } else if (signal) {
        const auto word = static_cast<std::size_t>(rank.pages.index_of(*signal));
        own = stretch_of(own, times.sightings[word]);
      }
      const std::int64_t start = clock.to_host(own.start);
      events.push_back({.task = task,
                        .kernel = is_noted ? first : TaskId(),
                        .start = nanoseconds(start),
                        .end = nanoseconds(std::max(start, clock.to_host(own.end))),
                        .waited = nanoseconds(own.waited)});
    }
  }
  return events;
}

std::vector<KernelEvent> kernels_of(const TracedLaunches& rank, const RankTimes& times,
                                    const ClockFit& clock) {
  std::vector<KernelEvent> events;
  for (std::size_t i = 0; i < rank.launches.size(); ++i) {
    const launch::Launch& launch = rank.launch_plan.launches[rank.launches[i].id.index()];
    const auto noted = times.notes.find(launch.does.front());
    if (launch.lands || noted == times.notes.end()) continue;
    const Stretch whole = stretch_of(rank.launches[i], times.launches[i], times.stamp_ns);
    KernelEvent event{.kernel = noted->first, .part = KernelPart::Held};
    event.start = nanoseconds(clock.to_host(whole.start - whole.waited));
    event.end = nanoseconds(clock.to_host(whole.start));
    events.push_back(event);
    for (const device::BlockNotes& block : noted->second) {
      if (block.begin_ns != 0) add_block(event, block, clock, events);
      ++event.block;
    }
  }
  return events;
}

Timeline from_the_first(Timeline timeline) {
  std::vector<TraceEvent>& events = timeline.events;
  if (events.empty()) return timeline;
  const auto began = [](const TraceEvent& event) { return event.start - event.waited; };
  const nanoseconds first = began(std::ranges::min(events, {}, began));
  for (TraceEvent& event : events) {
    event.start -= first;
    event.end -= first;
  }
  for (KernelEvent& event : timeline.kernels) {
    event.start -= first;
    event.end -= first;
  }
  std::ranges::sort(events, {}, &TraceEvent::task);
  return timeline;
}

}  // namespace harpe::cuda
