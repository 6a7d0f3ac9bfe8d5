#include "exec/cuda/executor/timeline.h"

#include <algorithm>

namespace harpe::cuda {
namespace {

using std::chrono::nanoseconds;

std::int64_t signed_of(std::uint64_t time) { return static_cast<std::int64_t>(time); }

// A unit's own stretch, by its GPU's clock.
struct Stretch {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t waited = 0;
};

Stretch stretch_of(const Unit& unit, const UnitTimes& times, std::int64_t stamp) {
  Stretch stretch;
  const std::int64_t begin = signed_of(times.start);
  stretch.start = stretch.end = begin;
  if (times.end != device::kNever) {
    // Where there is work it begins a launch behind the one stamp, and ends one before the other.
    const std::int64_t apart = unit.work.size() > 0 ? stamp : 0;
    const std::int64_t end = signed_of(times.end) - apart;
    stretch.start = std::min(begin + apart, std::max(begin, end));
    stretch.end = std::max(stretch.start, end);
  }
  if (times.reached != device::kNever) {
    stretch.waited = std::max<std::int64_t>(0, begin - signed_of(times.reached) - stamp);
  }
  return stretch;
}

// Of a member of a kernel that waits inside.
Stretch stretch_of(const Stretch& unit, const device::Sighting& sighting) {
  if (sighting.seen_ns == device::kNever) return unit;
  Stretch stretch = unit;
  stretch.start = std::clamp(signed_of(sighting.seen_ns), unit.start, unit.end);
  if (sighting.awaited_ns == device::kNever || stretch.start == unit.start) return stretch;
  stretch.waited = std::max<std::int64_t>(
      0, stretch.start - std::max(unit.start, signed_of(sighting.awaited_ns)));
  return stretch;
}

// Appends what a block did.
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

std::vector<TraceEvent> events_of(const Plan& plan, const Wiring& wiring,
                                  std::span<const Unit> units, const RankTimes& times,
                                  const ClockFit& clock) {
  std::vector<TraceEvent> events;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const Unit& unit = units[i];
    if (unit.lands) continue;  // of a task of another rank
    const Stretch whole = stretch_of(unit, times.units[i], times.stamp_ns);
    const bool is_noted = times.notes.contains(unit.tasks.front());
    for (const TaskId task : unit.tasks) {
      const bool is_first = task == unit.tasks.front();
      Stretch own = whole;
      if (!is_first) own.waited = 0;
      const std::vector<std::int32_t>& signals = wiring.tasks[task.index()].waits;
      if (!is_first && plan.tasks[task.index()].kind == TaskKind::Finalise) {
        own.start = whole.end;
      } else if (unit.waits_inside && !signals.empty()) {
        own = stretch_of(own, times.sightings[static_cast<std::size_t>(signals.front())]);
      }
      const std::int64_t start = clock.to_host(own.start);
      events.push_back({.task = task,
                        .kernel = is_noted ? unit.tasks.front() : TaskId(),
                        .start = nanoseconds(start),
                        .end = nanoseconds(std::max(start, clock.to_host(own.end))),
                        .waited = nanoseconds(own.waited)});
    }
  }
  return events;
}

std::vector<KernelEvent> kernels_of(std::span<const Unit> units, const RankTimes& times,
                                    const ClockFit& clock) {
  std::vector<KernelEvent> events;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto noted = times.notes.find(units[i].tasks.front());
    if (units[i].lands || noted == times.notes.end()) continue;
    const Stretch whole = stretch_of(units[i], times.units[i], times.stamp_ns);
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
