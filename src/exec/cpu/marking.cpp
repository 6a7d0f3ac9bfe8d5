#include "exec/cpu/marking.h"

#include "exec/cpu/run_action.h"
#include "support/check.h"

namespace harpe::cpu {
Marking::Marking(const Plan& plan, std::vector<actions::TaskWork> work,
                 std::optional<TaskId> drop_signal_of, const processes::Partition& partition,
                 Outside* outside, sync::Between between)
    : plan_(plan),
      work_(std::move(work)),
      drop_signal_of_(drop_signal_of),
      partition_(partition),
      outside_(outside),
      queues_(plan.queues.size()),
      positions_(plan.tasks.size()),
      signals_(map_signals(plan, partition, between)),
      is_far_(plan.tasks.size(), false),
      values_(std::make_unique<std::atomic<std::int64_t>[]>(signals_.signals.size())) {
  link_queues();
}

void Marking::link_queues() {
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    const TaskId task(static_cast<std::int64_t>(i));
    const std::size_t queue = plan_.tasks[i].queue.index();
    if (!partition_.is_own(plan_.queues[queue].rank)) continue;
    positions_[i] = queues_[queue].tasks.size();
    queues_[queue].tasks.push_back(task);
    is_far_[i] = is_far_put(plan_, partition_, task);
  }
}

void Marking::clear() {
  for (Queue& queue : queues_) queue = {.tasks = std::move(queue.tasks)};
  for (std::size_t i = 0; i < signals_.signals.size(); ++i) values_[i] = 0;
  last_epoch_ = 0;
}

void Marking::begin(std::int64_t count, bool trace) {
  first_epoch_ = last_epoch_ + 1;
  last_epoch_ += count;
  traces_ = trace;
  trace_.assign(trace ? plan_.tasks.size() : 0, TraceEvent{});
  ends_ = std::vector<std::atomic<std::int64_t>>(static_cast<std::size_t>(count));
  start_ = std::chrono::steady_clock::now();
}

bool Marking::is_finished(std::int32_t queue) const {
  const Queue& state = queues_[static_cast<std::size_t>(queue)];
  return state.tasks.empty() || state.epoch > last_epoch_;
}

TaskId Marking::head(std::int32_t queue) const {
  const Queue& state = queues_[static_cast<std::size_t>(queue)];
  return state.tasks[state.position];
}

bool Marking::has_begun(std::int32_t queue) const {
  return queues_[static_cast<std::size_t>(queue)].stage > 0;
}

std::int64_t Marking::epoch(std::int32_t queue) const {
  return queues_[static_cast<std::size_t>(queue)].epoch;
}

// The signals that the queue's next step waits for.
const std::vector<std::int32_t>& Marking::waits_of(const Queue& queue) const {
  return signals_.tasks[queue.tasks[queue.position].index()].waits[queue.stage];
}

// Acquire: pairs with the release in `raise`, so what the producer wrote is seen by this step.
std::int64_t Marking::value_of(const ProcessSignal& signal) const {
  if (signal.flag >= 0) return outside_->read(signal.flag);
  return values_[static_cast<std::size_t>(&signal - signals_.signals.data())].load(
      std::memory_order_acquire);
}

// For a step of that execution.
bool Marking::is_raised(const ProcessSignal& signal, std::int64_t epoch) const {
  return value_of(signal) >= signal.awaited(epoch) * signal.arrivals;
}

bool Marking::is_ready(std::int32_t queue) {
  Queue& state = queues_[static_cast<std::size_t>(queue)];
  const std::vector<std::int32_t>& waits = waits_of(state);
  // Signals only grow: what was raised once stays so, and is not looked at again.
  for (; state.satisfied < waits.size(); ++state.satisfied) {
    if (!is_raised(signal_at(waits[state.satisfied]), state.epoch)) return false;
  }
  return true;
}

void Marking::raise(std::int32_t signal, std::int64_t epoch, const Wake& wake) {
  const ProcessSignal& info = signal_at(signal);
  std::atomic<std::int64_t>& value = values_[static_cast<std::size_t>(signal)];
  if (info.arrivals == 1) {
    value.store(epoch, std::memory_order_release);
  } else {
    // All increments of an execution come before those of the next, so the counter passes a
    // multiple of `arrivals` exactly when an execution's last member adds to it. Proof:
    // Collectives: no member goes on before all have come.
    // Barriers: a member m is there because a task w behind the barrier must wait for it, so both
    // use the memory of some rank r. In an execution all members come before w, and w before the
    // Exit of r. In the next, m comes behind the Entry of r, which follows that Exit, or behind an
    // Entry that waits for the credit that this Exit gives.
    // Credits: an Entry waits for all members' Exits of the execution before. A member's next Exit
    // comes behind what that Entry's rank does to the member's memory, which is why it waits.
    const std::int64_t count = value.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (count % info.arrivals != 0) return;
  }
  for (const Outgoing& flag : info.outgoing) outside_->raise(flag, epoch);
  for (const std::int32_t queue : info.waiters) wake(queue);
}

std::int64_t Marking::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              start_)
      .count();
}

void Marking::step(std::int32_t queue, const Wake& wake) {
  Queue& state = queues_[static_cast<std::size_t>(queue)];
  const TaskId task = state.tasks[state.position];
  const bool traces = traces_ && state.epoch == last_epoch_;
  if (traces && state.stage == 0) {
    trace_[task.index()].task = task;
    trace_[task.index()].start = std::chrono::nanoseconds(now());
  }
  state.satisfied = 0;
  const bool meets = plan_.tasks[task.index()].kind == TaskKind::Collective;
  if ((!meets || state.stage == 1) && !run(state, task)) return;
  if (meets && state.stage < 2) {
    const std::size_t stage = state.stage++;
    for (const std::int32_t signal : signals_.tasks[task.index()].raises[stage]) {
      raise(signal, state.epoch, wake);
    }
    return;
  }
  if (traces) trace_[task.index()].end = std::chrono::nanoseconds(now());
  finish(state, task, wake);
}

// False: the network failed, which ends the run.
bool Marking::run(Queue& queue, TaskId task) {
  if (!is_far_[task.index()]) {
    cpu::run(work_[task.index()]);
    return true;
  }
  std::vector<Outgoing> behind;
  for (const std::int32_t signal : signals_.tasks[task.index()].raises.back()) {
    const ProcessSignal& info = signal_at(signal);
    if (!info.is_behind_put || drop_signal_of_ == task) continue;
    behind.insert(behind.end(), info.outgoing.begin(), info.outgoing.end());
  }
  return outside_->post(task, behind, queue.epoch);
}

void Marking::complete(TaskId task, std::int64_t epoch, const Wake& wake) {
  if (drop_signal_of_ == task) return;
  for (const std::int32_t signal : signals_.tasks[task.index()].raises.back()) {
    if (!signal_at(signal).is_behind_put) raise(signal, epoch, wake);
  }
}

void Marking::finish(Queue& queue, TaskId task, const Wake& wake) {
  const std::int64_t epoch = queue.epoch;
  queue.stage = 0;
  if (++queue.position == queue.tasks.size()) {
    queue.position = 0;
    ++queue.epoch;
  }
  if (plan_.tasks[task.index()].kind == TaskKind::Exit) {
    std::atomic<std::int64_t>& end = ends_[static_cast<std::size_t>(epoch - first_epoch_)];
    const std::int64_t time = now();
    std::int64_t latest = end.load(std::memory_order_relaxed);
    while (latest < time && !end.compare_exchange_weak(latest, time, std::memory_order_relaxed)) {
    }
  }
  if (!is_far_[task.index()]) complete(task, epoch, wake);
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

std::optional<Marking::Hindrance> Marking::hindrance(std::int32_t queue) const {
  const Queue& state = queues_[static_cast<std::size_t>(queue)];
  for (const std::int32_t wait : waits_of(state)) {
    const ProcessSignal& signal = signal_at(wait);
    if (is_raised(signal, state.epoch)) continue;
    return Hindrance{
        .signal = &signal, .epoch = signal.awaited(state.epoch), .observed = value_of(signal)};
  }
  return std::nullopt;
}

bool Marking::has_run(TaskId task, std::int64_t epoch) const {
  const Queue& queue = queues_[plan_.tasks[task.index()].queue.index()];
  if (queue.tasks.empty()) return false;  // of another process: not known
  return queue.epoch > epoch || (queue.epoch == epoch && positions_[task.index()] < queue.position);
}

}  // namespace harpe::cpu
