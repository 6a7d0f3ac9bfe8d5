#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "sync/groups.h"

namespace harpe::sync {

// A signal of a rank's page, and what it is for.
struct PageSignal {
  launch::SignalKind kind = launch::SignalKind::Sync;
  std::int32_t index = 0;     // of the sync, barrier, group or rank
  std::int32_t arrivals = 1;  // per execution; of a flag 1
  std::vector<TaskId> producers;
  bool is_posted = false;  // raised from another node: in the host's memory (executor/network.h)
  friend bool operator==(const PageSignal&, const PageSignal&) = default;
};

// A signal that a task raises, in the page of the rank that waits for it.
struct PageRaise {
  RankId rank;
  std::int32_t signal = 0;
  std::uint32_t added = 0;  // what a counter grows by; 0: a flag
  bool is_posted = false;   // as of the signal
  friend bool operator==(const PageRaise&, const PageRaise&) = default;
};

// What surrounds a task. An Entry waits before the epoch begins, for signals of the one before,
// which are there at first. A collective raises `arrivals` before it pulls and waits for `arrival`,
// raises `raises_after_pull` behind and waits for `pulled`, so that nobody's part changes under a
// peer.
struct TaskWiring {
  std::vector<TaskId> after;        // tasks of the same rank, in other queues but for puts of CPUs
  std::vector<std::int32_t> waits;  // signals of the own page
  std::vector<PageRaise> arrivals;
  std::optional<std::int32_t> arrival;
  std::vector<PageRaise> raises_after_pull;
  std::optional<std::int32_t> pulled;
  std::vector<PageRaise> raises;  // when it is over
  friend bool operator==(const TaskWiring&, const TaskWiring&) = default;
};

// A plan's synchronization as streams and signals have it (commir.md 7.3, D18): a queue is a
// stream, an event within a rank an edge between streams, everything across ranks a signal in the
// waiting rank's page that is monotone over executions. So is what members of a group wait for,
// whoever makes it: a kernel looks at signals alone.
//
// On GPUs a put is two things: its own rank packs and posts it, and the rank it goes to lands it,
// that is, waits until it has arrived, copies it to where it belongs and raises its signals. There,
// a put's id means its landing.
struct Wiring {
  std::vector<TaskWiring> tasks;
  std::map<TaskId, TaskWiring> landings;       // of puts
  std::vector<std::vector<TaskId>> landed;     // per rank: puts to it, queue by queue
  std::vector<std::vector<PageSignal>> pages;  // per rank
  std::vector<std::vector<TaskId>> sequence;   // per rank: its tasks, each after what it is `after`

  // What surrounds the task on a rank.
  [[nodiscard]] const TaskWiring& on(const Plan& plan, RankId rank, TaskId task) const;
};

// Of a copy by `tma`: what the signal of another rank that waits for it grows by, so that blocks of
// a kernel can make it, chunk by chunk. 0 of other tasks: they raise flags.
[[nodiscard]] std::uint32_t count_chunks(const Task& task, std::int64_t chunk_bytes);

// Whether the task waits for nothing that comes later than the beginnings of executions.
[[nodiscard]] bool waits_for_entries(const Plan& plan, const Wiring& wiring, TaskId task);

// Of a collective that is over on a rank only when no member needs that rank's part any more.
void end_by_itself(TaskWiring& collective);

// Who uses the memory of a plan's ranks between executions.
enum class Between : std::uint8_t {
  Nobody,  // a rank's Exit gives credit to those that write to its slots in the next execution
  Others,  // other plans, in turn: nobody touches a rank's memory before its Entry says so
};

// For GPUs. `chunk_bytes`: what blocks of a kernel copy at a time. Requires: a verified plan that
// check_nodes accepts, and its groups.
[[nodiscard]] Wiring wire(const Plan& plan, const Groups& groups, std::int64_t chunk_bytes,
                          Between between = Between::Nobody);

// For CPU ranks: each task runs by itself, and a put is one task, over once its data is in place.
// There are no landings, no rings and no chunks. Requires: a verified plan.
[[nodiscard]] Wiring wire(const Plan& plan, Between between = Between::Nobody);

}  // namespace harpe::sync
