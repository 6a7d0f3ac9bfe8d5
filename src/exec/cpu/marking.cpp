#include "exec/cpu/marking.h"

#include <algorithm>
#include <map>

#include "exec/cpu/run_action.h"
#include "support/check.h"

namespace harpe::cpu {
namespace {

constexpr std::int32_t kNoWord = -1;

void add_unique(std::vector<std::int32_t>& lanes, std::int32_t lane) {
  if (std::ranges::find(lanes, lane) == lanes.end()) lanes.push_back(lane);
}

}  // namespace

Marking::Marking(const Plan& plan, std::vector<actions::TaskWork> work,
                 std::optional<TaskId> drop_signal_of)
    : plan_(plan),
      work_(std::move(work)),
      drop_signal_of_(drop_signal_of),
      lanes_(plan.lanes.size()),
      positions_(plan.tasks.size()),
      waits_(plan.tasks.size()),
      signals_(plan.tasks.size()),
      arrivals_(plan.tasks.size(), kNoWord),
      pulled_(plan.tasks.size(), kNoWord) {
  link_lanes();
  link_entries();
  link_syncs();
  link_collectives();
  values_ = std::make_unique<std::atomic<std::int64_t>[]>(words_.size());
}

std::int32_t Marking::add_word(Word word) {
  words_.push_back(std::move(word));
  return static_cast<std::int32_t>(words_.size()) - 1;
}

void Marking::link_lanes() {
  for (std::size_t task = 0; task < plan_.tasks.size(); ++task) {
    const std::size_t lane = plan_.tasks[task].lane.index();
    HP_CHECK(lane < lanes_.size(), "lane of task " + std::to_string(task));
    positions_[task] = lanes_[lane].tasks.size();
    lanes_[lane].tasks.emplace_back(static_cast<std::int64_t>(task));
  }
}

// A lane may begin an execution when its rank's Entry has run. Where the plan itself has no edge
// that says so (a lane whose first task needs nothing of this rank), a lane could otherwise run
// executions ahead of its rank.
void Marking::link_entries() {
  std::map<RankId, TaskId> entries;
  for (std::size_t task = 0; task < plan_.tasks.size(); ++task) {
    if (plan_.tasks[task].kind != TaskKind::Entry) continue;
    const RankId rank = plan_.lanes[plan_.tasks[task].lane.index()].rank;
    HP_CHECK(positions_[task] == 0 && !entries.contains(rank), "a rank begins with its one Entry");
    entries.emplace(rank, TaskId(static_cast<std::int64_t>(task)));
  }
  std::map<RankId, std::int32_t> words;
  for (const auto& [rank, entry] : entries) {
    words[rank] = add_word({.kind = WordKind::Entry,
                            .index = rank.value,
                            .members = 0,
                            .producers = {entry},
                            .waiters = {}});
    signals_[entry.index()].push_back(words[rank]);
  }
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].tasks.empty()) continue;
    const TaskId first = lanes_[lane].tasks.front();
    const RankId rank = plan_.lanes[lane].rank;
    HP_CHECK(words.contains(rank), "an Entry of rank " + std::to_string(rank.value));
    if (first == entries[rank]) continue;
    const std::int32_t word = words[rank];
    waits_[first.index()].push_back({.word = word, .scale = 1});
    words_[static_cast<std::size_t>(word)].waiters.push_back(static_cast<std::int32_t>(lane));
  }
}

void Marking::link_syncs() {
  for (std::size_t i = 0; i < plan_.syncs.size(); ++i) {
    const Sync& sync = plan_.syncs[i];
    const std::int32_t word = add_word({.kind = WordKind::Sync,
                                        .index = static_cast<std::int32_t>(i),
                                        .members = 0,
                                        .producers = {sync.from},
                                        .waiters = {plan_.tasks[sync.to.index()].lane.value}});
    signals_[sync.from.index()].push_back(word);
    waits_[sync.to.index()].push_back({.word = word, .scale = 1});
  }
  for (std::size_t i = 0; i < plan_.barriers.size(); ++i) {
    const Barrier& barrier = plan_.barriers[i];
    const auto members = static_cast<std::int64_t>(barrier.from.size());
    const std::int32_t word = add_word({.kind = WordKind::Barrier,
                                        .index = static_cast<std::int32_t>(i),
                                        .members = members,
                                        .producers = barrier.from,
                                        .waiters = {}});
    for (const TaskId from : barrier.from) signals_[from.index()].push_back(word);
    for (const TaskId to : barrier.to) {
      waits_[to.index()].push_back({.word = word, .scale = members});
      add_unique(words_.back().waiters, plan_.tasks[to.index()].lane.value);
    }
  }
}

void Marking::link_collectives() {
  std::map<std::int32_t, std::vector<TaskId>> groups;
  for (std::size_t task = 0; task < plan_.tasks.size(); ++task) {
    if (plan_.tasks[task].kind != TaskKind::Collective) continue;
    groups[plan_.tasks[task].group].emplace_back(static_cast<std::int64_t>(task));
  }
  for (const auto& [group, members] : groups) {
    std::vector<std::int32_t> lanes;
    for (const TaskId task : members) add_unique(lanes, plan_.tasks[task.index()].lane.value);
    Word word{.kind = WordKind::Arrival,
              .index = group,
              .members = static_cast<std::int64_t>(members.size()),
              .producers = members,
              .waiters = lanes};
    const std::int32_t arrival = add_word(word);
    word.kind = WordKind::Pulled;
    const std::int32_t pulled = add_word(std::move(word));
    for (const TaskId task : members) {
      arrivals_[task.index()] = arrival;
      pulled_[task.index()] = pulled;
    }
  }
}

void Marking::begin(std::int64_t count, bool trace) {
  first_epoch_ = last_epoch_ + 1;
  last_epoch_ += count;
  traces_ = trace;
  trace_.assign(trace ? plan_.tasks.size() : 0, TraceEvent{});
  ends_ = std::vector<std::atomic<std::int64_t>>(static_cast<std::size_t>(count));
  start_ = std::chrono::steady_clock::now();
}

bool Marking::is_finished(std::int32_t lane) const {
  const Lane& state = lanes_[static_cast<std::size_t>(lane)];
  return state.tasks.empty() || state.epoch > last_epoch_;
}

TaskId Marking::head(std::int32_t lane) const {
  const Lane& state = lanes_[static_cast<std::size_t>(lane)];
  return state.tasks[state.position];
}

bool Marking::has_begun(std::int32_t lane) const {
  return lanes_[static_cast<std::size_t>(lane)].stage > 0;
}

std::int64_t Marking::epoch(std::int32_t lane) const {
  return lanes_[static_cast<std::size_t>(lane)].epoch;
}

// The wait number `i` of the lane's next step, if it has so many.
std::optional<Marking::Wait> Marking::wait_of(const Lane& lane, std::size_t i) const {
  const std::size_t task = lane.tasks[lane.position].index();
  if (lane.stage == 0) {
    if (i < waits_[task].size()) return waits_[task][i];
    return std::nullopt;
  }
  if (i > 0) return std::nullopt;
  const std::int32_t word = lane.stage == 1 ? arrivals_[task] : pulled_[task];
  return Wait{.word = word, .scale = words_[static_cast<std::size_t>(word)].members};
}

bool Marking::is_over(const Wait& wait, std::int64_t epoch) const {
  // Acquire: pairs with the release in `raise`, so what the producer wrote is seen by this step.
  return values_[static_cast<std::size_t>(wait.word)].load(std::memory_order_acquire) >=
         epoch * wait.scale;
}

bool Marking::is_ready(std::int32_t lane) {
  Lane& state = lanes_[static_cast<std::size_t>(lane)];
  // Words only grow: what was over once is over, and is not looked at again.
  while (const std::optional<Wait> wait = wait_of(state, state.satisfied)) {
    if (!is_over(*wait, state.epoch)) return false;
    ++state.satisfied;
  }
  return true;
}

void Marking::raise(std::int32_t word, std::int64_t epoch, const Wake& wake) {
  const Word& info = words_[static_cast<std::size_t>(word)];
  std::atomic<std::int64_t>& value = values_[static_cast<std::size_t>(word)];
  if (info.members == 0) {
    value.store(epoch, std::memory_order_release);
  } else {
    // The increments of one execution are all before those of the next: a member can begin the next
    // one only after an Exit or a rendezvous that all members of this one precede. So the counter
    // passes a multiple of `members` exactly when an execution's last member adds to it.
    const std::int64_t count = value.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (count % info.members != 0) return;
  }
  for (const std::int32_t lane : info.waiters) wake(lane);
}

std::int64_t Marking::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              start_)
      .count();
}

void Marking::step(std::int32_t lane, const Wake& wake) {
  Lane& state = lanes_[static_cast<std::size_t>(lane)];
  const TaskId task = state.tasks[state.position];
  const bool traces = traces_ && state.epoch == last_epoch_;
  if (traces && state.stage == 0) {
    trace_[task.index()].task = task;
    trace_[task.index()].start = std::chrono::nanoseconds(now());
  }
  state.satisfied = 0;
  const std::int32_t arrival = arrivals_[task.index()];
  if (arrival != kNoWord && state.stage == 0) {
    state.stage = 1;
    raise(arrival, state.epoch, wake);
    return;
  }
  if (state.stage < 2) cpu::run(work_[task.index()]);
  if (state.stage == 1) {
    state.stage = 2;
    raise(pulled_[task.index()], state.epoch, wake);
    return;
  }
  if (traces) trace_[task.index()].end = std::chrono::nanoseconds(now());
  finish(state, task, wake);
}

void Marking::finish(Lane& lane, TaskId task, const Wake& wake) {
  const std::int64_t epoch = lane.epoch;
  lane.stage = 0;
  if (++lane.position == lane.tasks.size()) {
    lane.position = 0;
    ++lane.epoch;
  }
  if (plan_.tasks[task.index()].kind == TaskKind::Exit) {
    std::atomic<std::int64_t>& end = ends_[static_cast<std::size_t>(epoch - first_epoch_)];
    const std::int64_t time = now();
    std::int64_t latest = end.load(std::memory_order_relaxed);
    while (latest < time && !end.compare_exchange_weak(latest, time, std::memory_order_relaxed)) {
    }
  }
  if (drop_signal_of_ == task) return;
  for (const std::int32_t word : signals_[task.index()]) raise(word, epoch, wake);
}

std::vector<std::chrono::nanoseconds> Marking::durations() const {
  std::vector<std::chrono::nanoseconds> durations;
  std::int64_t begin = 0;
  for (const std::atomic<std::int64_t>& end : ends_) {
    durations.emplace_back(end.load() - begin);
    begin = end.load();
  }
  return durations;
}

std::optional<Marking::Hindrance> Marking::hindrance(std::int32_t lane) const {
  const Lane& state = lanes_[static_cast<std::size_t>(lane)];
  for (std::size_t i = 0; const std::optional<Wait> wait = wait_of(state, i); ++i) {
    if (is_over(*wait, state.epoch)) continue;
    return Hindrance{.word = &words_[static_cast<std::size_t>(wait->word)],
                     .expected = state.epoch * wait->scale,
                     .observed = values_[static_cast<std::size_t>(wait->word)].load()};
  }
  return std::nullopt;
}

bool Marking::has_run(TaskId task, std::int64_t epoch) const {
  const Lane& lane = lanes_[plan_.tasks[task.index()].lane.index()];
  return lane.epoch > epoch || (lane.epoch == epoch && positions_[task.index()] < lane.position);
}

}  // namespace harpe::cpu
