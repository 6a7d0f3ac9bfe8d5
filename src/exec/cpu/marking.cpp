#include "exec/cpu/marking.h"

#include "exec/cpu/run_action.h"
#include "support/check.h"

namespace harpe::cpu {

Marking::Marking(const Plan& plan, LaunchSteps steps, StepWork work,
                 std::optional<TaskId> drop_signal_of, const processes::Partition& partition,
                 Outside* outside)
    : plan_(plan),
      steps_(std::move(steps)),
      work_(std::move(work)),
      drop_signal_of_(drop_signal_of),
      partition_(partition),
      outside_(outside),
      queues_(plan.queues.size()),
      signals_(map_signals(plan, steps_, partition)),
      is_far_(plan.tasks.size(), false),
      values_(std::make_unique<std::atomic<std::int64_t>[]>(signals_.signals.size())) {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    queues_[i].is_own = partition_.is_own(plan_.queues[i].rank);
  }
  for (std::size_t i = 0; i < is_far_.size(); ++i) {
    is_far_[i] = is_far_put(plan_, partition_, TaskId(static_cast<std::int64_t>(i)));
  }
}

void Marking::clear() {
  for (Queue& queue : queues_) queue = {.is_own = queue.is_own};
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

std::int64_t Marking::count_steps() const {
  std::int64_t steps = 0;
  for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
    if (queues_[queue].is_own) steps += std::ssize(steps_.queues[queue]);
  }
  return steps * (last_epoch_ + 1 - first_epoch_);
}

bool Marking::is_finished(std::int32_t queue) const {
  const Queue& state = state_of(queue);
  return !state.is_own || steps_.queues[static_cast<std::size_t>(queue)].empty() ||
         state.epoch > last_epoch_;
}

TaskId Marking::head(std::int32_t queue) const { return step_at(place_of(queue)).task; }

bool Marking::has_begun(std::int32_t queue) const { return !step_at(place_of(queue)).begins; }

bool Marking::is_at(std::int32_t queue, TaskId task) const {
  const StepPlace end = end_of(task);
  return end.queue == queue && step_at(end).launch == step_at(place_of(queue)).launch;
}

std::int64_t Marking::epoch(std::int32_t queue) const { return state_of(queue).epoch; }

// Acquire: pairs with the release in `raise`, so this step sees what the producer wrote.
std::int64_t Marking::value_of(const ProcessSignal& signal) const {
  if (signal.flag >= 0) return outside_->read(signal.flag);
  return values_[static_cast<std::size_t>(&signal - signals_.signals.data())].load(
      std::memory_order_acquire);
}

// Whether the signal satisfies a step of that execution.
bool Marking::is_raised(const ProcessSignal& signal, std::int64_t epoch) const {
  return value_of(signal) >= signal.awaited(epoch) * signal.arrivals;
}

bool Marking::is_ready(std::int32_t queue) {
  Queue& state = state_of(queue);
  const std::vector<std::int32_t>& waits = signals_at(place_of(queue)).waits;
  // Signals only grow: one that is raised stays raised and is not read again.
  for (; state.satisfied < waits.size(); ++state.satisfied) {
    if (!is_raised(signal_at(waits[state.satisfied]), state.epoch)) return false;
  }
  return true;
}

void Marking::raise(const SignalRaise& raise, std::int64_t epoch, const Wake& wake) {
  const ProcessSignal& info = signal_at(raise.signal);
  std::atomic<std::int64_t>& value = values_[static_cast<std::size_t>(raise.signal)];
  if (raise.adds == 0) {
    value.store(epoch, std::memory_order_release);
  } else {
    // All increments of an execution precede those of the next, so the counter passes a multiple of
    // `arrivals` exactly when the last member of an execution adds to it. Proof:
    // Collectives: no member continues before all have arrived.
    // Barriers: a member m is in the barrier because a task w behind it must wait for m, so both
    // use the memory of some rank r. In an execution, all members precede w, and w precedes the
    // Exit of r. In the next, m follows the Entry of r, which follows that Exit, or follows an
    // Entry that waits for the credit that this Exit grants.
    // Chunks of fused copies: one step adds all of them.
    const auto adds = static_cast<std::int64_t>(raise.adds);
    const std::int64_t count = value.fetch_add(adds, std::memory_order_acq_rel) + adds;
    if (count / info.arrivals == (count - adds) / info.arrivals) return;
  }
  for (const Outgoing& flag : info.outgoing) outside_->raise(flag, epoch);
  for (const std::int32_t queue : info.waiters) wake(queue);
}

void Marking::raise_all(StepPlace place, std::int64_t epoch, const Wake& wake) {
  for (const SignalRaise& raised : signals_at(place).raises) {
    if (!signal_at(raised.signal).is_behind_put) raise(raised, epoch, wake);
  }
}

std::int64_t Marking::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              start_)
      .count();
}

void Marking::step(std::int32_t queue, const Wake& wake) {
  Queue& state = state_of(queue);
  const Step& step = step_at(place_of(queue));
  const bool traces = traces_ && state.epoch == last_epoch_;
  TraceEvent* const event = traces ? &trace_[step.task.index()] : nullptr;
  if (traces && step.begins) {
    event->task = step.task;
    event->start = std::chrono::nanoseconds(now());
  }
  state.satisfied = 0;
  if (!run(queue)) return;
  if (traces && step.ends) event->end = std::chrono::nanoseconds(now());
  finish(queue, wake);
}

// False: the network has failed, which ends the run.
bool Marking::run(std::int32_t queue) {
  const StepPlace place = place_of(queue);
  const TaskId task = step_at(place).task;
  if (outside_ != nullptr) outside_->begin(place);
  if (!is_far_[task.index()]) {
    cpu::run(
        work_[static_cast<std::size_t>(place.queue)][static_cast<std::size_t>(place.position)]);
    return true;
  }
  std::vector<Outgoing> behind;
  for (const SignalRaise& raised : signals_at(place).raises) {
    const ProcessSignal& info = signal_at(raised.signal);
    if (!info.is_behind_put || drop_signal_of_ == task) continue;
    behind.insert(behind.end(), info.outgoing.begin(), info.outgoing.end());
  }
  return outside_->post(task, behind, state_of(queue).epoch);
}

void Marking::complete(TaskId task, std::int64_t epoch, const Wake& wake) {
  if (drop_signal_of_ != task) raise_all(end_of(task), epoch, wake);
}

void Marking::finish(std::int32_t queue, const Wake& wake) {
  const StepPlace place = place_of(queue);
  const Step& step = step_at(place);
  Queue& state = state_of(queue);
  const std::int64_t epoch = state.epoch;
  if (++state.position == steps_.queues[static_cast<std::size_t>(queue)].size()) {
    state.position = 0;
    ++state.epoch;
  }
  if (step.ends && plan_.tasks[step.task.index()].kind == TaskKind::Exit) note_end(epoch);
  if (is_far_[step.task.index()]) return;
  const bool is_dropped = step.ends && drop_signal_of_ && end_of(*drop_signal_of_) == place;
  if (!is_dropped) raise_all(place, epoch, wake);
}

void Marking::note_end(std::int64_t epoch) {
  std::atomic<std::int64_t>& end = ends_[static_cast<std::size_t>(epoch - first_epoch_)];
  const std::int64_t time = now();
  std::int64_t latest = end.load(std::memory_order_relaxed);
  while (latest < time && !end.compare_exchange_weak(latest, time, std::memory_order_relaxed)) {
  }
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
  const std::int64_t epoch = state_of(queue).epoch;
  for (const std::int32_t wait : signals_at(place_of(queue)).waits) {
    const ProcessSignal& signal = signal_at(wait);
    if (is_raised(signal, epoch)) continue;
    return Hindrance{
        .signal = &signal, .epoch = signal.awaited(epoch), .observed = value_of(signal)};
  }
  return std::nullopt;
}

bool Marking::has_run(StepPlace step, std::int64_t epoch) const {
  const Queue& queue = state_of(step.queue);
  if (!queue.is_own) return false;
  return queue.epoch > epoch ||
         (queue.epoch == epoch && step.position < static_cast<std::int32_t>(queue.position));
}

}  // namespace harpe::cpu
