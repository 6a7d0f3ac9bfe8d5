#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "plan/launch_plan.h"
#include "plan/plan.h"
#include "sync/groups.h"

namespace harpe::sync {

// A signal in a rank's page, and its meaning.
struct PageSignal {
  launch::SignalKind kind = launch::SignalKind::Sync;
  std::int32_t index = 0;     // of the sync, barrier, group or rank
  std::int32_t arrivals = 1;  // per execution; 1 for a flag
  std::vector<TaskId> producers;
  bool is_posted = false;  // raised from another node: lies in host memory (executor/network.h)
  friend bool operator==(const PageSignal&, const PageSignal&) = default;
};

// A raise of a signal that lies in the page of the waiting rank.
struct PageRaise {
  RankId rank;
  std::int32_t signal = 0;
  std::uint32_t added = 0;  // increment of a counter; 0: a flag
  bool is_posted = false;   // as PageSignal::is_posted
  friend bool operator==(const PageRaise&, const PageRaise&) = default;
};

// The waits and signals of a task. An Entry waits before the epoch begins, for signals of the
// previous execution; the first execution finds them set. A collective raises `arrivals`, waits for
// `arrival`, pulls, raises `raises_after_pull` and waits for `pulled`, so that no member changes
// its part while a peer reads it.
struct TaskWiring {
  std::vector<TaskId> after;        // tasks of its rank in other queues; CPU puts: also in its own
  std::vector<std::int32_t> waits;  // signals of the rank's own page
  std::vector<PageRaise> arrivals;
  std::optional<std::int32_t> arrival;
  std::vector<PageRaise> raises_after_pull;
  std::optional<std::int32_t> pulled;
  std::vector<PageRaise> raises;  // when the task has ended
  friend bool operator==(const TaskWiring&, const TaskWiring&) = default;
};

// A plan's synchronization in terms of streams and signals (commir.md 7.3, D18). A queue is a
// stream, an event within a rank is an edge between streams, and every dependency across ranks is a
// signal in the waiting rank's page that only grows over executions. Members of a group wait for
// signals even within a rank, because a running kernel can only poll signals.
//
// On GPUs a put has two halves. The sending rank packs and posts it. The receiving rank lands it:
// it waits for the arrival, copies the data into place and raises the put's signals. On the
// receiving rank the put's id denotes this landing.
struct Wiring {
  std::vector<TaskWiring> tasks;
  std::map<TaskId, TaskWiring> landings;       // of puts
  std::vector<std::vector<TaskId>> landed;     // per rank: puts to it, queue by queue
  std::vector<std::vector<PageSignal>> pages;  // per rank
  std::vector<std::vector<TaskId>> sequence;   // per rank: its tasks, each behind its `after`

  // The task's wiring on that rank: of a put on its receiver, the landing.
  [[nodiscard]] const TaskWiring& on(const Plan& plan, RankId rank, TaskId task) const;
};

// By how much a copy by `tma` increments the signal of a waiting rank: its number of chunks,
// because blocks of a kernel may copy it chunk by chunk. 0 for other tasks, which raise flags.
[[nodiscard]] std::uint32_t count_chunks(const Task& task, std::int64_t chunk_bytes);

// Whether the task waits for no signals but those of Entries.
[[nodiscard]] bool waits_for_entries(const Plan& plan, const Wiring& wiring, TaskId task);

// For a collective whose end on a rank implies that no member still needs that rank's part: removes
// the second rendezvous.
void end_by_itself(TaskWiring& collective);

// When a rank lets others write to its slots.
enum class Grants : std::uint8_t {
  AtExit,   // by a credit for the next execution; between the two no other plan uses the memory
  AtEntry,  // no rank touches another's memory before that rank's Entry
};

// For GPUs. `chunk_bytes`: what one block copies at a time. Requires: a verified plan that
// check_nodes accepts, and its groups.
[[nodiscard]] Wiring wire(const Plan& plan, const Groups& groups, std::int64_t chunk_bytes,
                          Grants grants = Grants::AtExit);

// For CPU ranks: each task runs by itself, and a put is one task that ends once its data is in
// place. There are no landings, no rings and no chunks. Requires: a verified plan.
[[nodiscard]] Wiring wire(const Plan& plan, Grants grants = Grants::AtExit);

}  // namespace harpe::sync
