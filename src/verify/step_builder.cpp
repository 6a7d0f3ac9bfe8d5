#include "verify/step_builder.h"

#include "plan/launch_signals.h"
#include "verify/target_words.h"

namespace harpe::verifier {
namespace {

// An upper bound.
std::size_t count_steps(const launch::LaunchPlan& launches) {
  constexpr std::size_t kOfLaunch = 2;  // begin and end
  std::size_t count = 0;
  for (const launch::Launch& launch : launches.launches) {
    count += kOfLaunch + launch.does.size();
    for (const launch::Kernel& kernel : launch.kernels) {
      count += 1 + kernel.fused_copies.size();
      for (const launch::Panel& panel : kernel.panels) {
        count += 3 + panel.meets.size() + panel.addends.size() + panel.maps.size();
      }
    }
  }
  return count;
}

}  // namespace

void StepBuilder::begin(const Plan& plan, const launch::LaunchPlan& launches,
                        std::size_t private_from) {
  launches_ = &launches;
  out_.plan = {.program = plan.program,
               .mesh = plan.mesh,
               .form = plan.form,
               .allocs = plan.allocs,
               .queues = plan.queues,
               .tasks = {},
               .syncs = {},
               .barriers = {}};
  out_.plan.allocs.insert(out_.plan.allocs.end(), launches.boxes.begin(), launches.boxes.end());
  out_.scope = {.tasks = 0,
                .private_from = private_from,
                .is_of_launches = true,
                .takes_turns = says(launches.target, "turns")};
  out_.scope.narrowed.resize(private_from, false);
  out_.scope.apart.resize(private_from, !out_.scope.takes_turns);
  for (const AllocId id : launch::inboxes_of(launches)) out_.scope.apart[id.index()] = true;
  for (const AllocId id : launches.partials16) {
    Alloc& alloc = out_.plan.allocs[id.index()];
    alloc.dtype = find_buffer(plan.program, alloc.buffer)->dtype;
    out_.scope.narrowed[id.index()] = true;
  }
  out_.origins.reserve(count_steps(launches));
  out_.plan.tasks.reserve(2 * count_steps(launches));
  out_.signals.resize(launches.signals.size());
  forks_.resize(plan.queues.size());
}

void StepBuilder::enter(launch::LaunchId launch, QueueId queue) {
  launch_ = launch;
  queue_ = queue;
  has_steps_ = false;
  out_.first.push_back(static_cast<std::int32_t>(out_.plan.tasks.size()));
  out_.last.push_back(-1);
}

std::int32_t StepBuilder::push(const StepOrigin& origin, Task task) {
  const auto step = static_cast<std::int32_t>(out_.plan.tasks.size());
  out_.plan.tasks.push_back(std::move(task));
  out_.origins.push_back(origin);
  return step;
}

void StepBuilder::push_to_queue(const StepOrigin& origin, Task task) {
  out_.last.back() = push(origin, std::move(task));
}

void StepBuilder::add(StepKind kind) {
  push_to_queue({.kind = kind, .launch = launch_}, make_task(queue_, TaskKind::Copy));
}

void StepBuilder::add_task(TaskId id, Task task) {
  push_to_queue({.kind = StepKind::Task, .launch = launch_, .task = id}, std::move(task));
}

// The first fork is the launch's queue. Fork n shares a queue with fork n of earlier kernels of the
// launch's queue, which are over: fewer queues mean fewer strands.
QueueId StepBuilder::fork() {
  const std::size_t number = fork_first_.size();
  fork_first_.push_back(-1);
  fork_last_.push_back(-1);
  if (number == 0) return queue_;
  std::vector<QueueId>& queues = forks_[queue_.index()];
  if (number > queues.size()) {
    queues.emplace_back(static_cast<std::int64_t>(out_.plan.queues.size()));
    out_.plan.queues.push_back(
        {.rank = out_.plan.queues[queue_.index()].rank, .kind = QueueKind::Sm});
  }
  return queues[number - 1];
}

std::int32_t StepBuilder::add_forked(const StepOrigin& origin, Task task) {
  const std::int32_t step = push(origin, std::move(task));
  if (fork_first_.back() < 0) fork_first_.back() = step;
  fork_last_.back() = step;
  return step;
}

void StepBuilder::join(std::int32_t kernel) {
  const auto end = static_cast<std::int32_t>(out_.plan.tasks.size());
  for (std::size_t fork = 1; fork < fork_first_.size(); ++fork) {
    order(out_.last.back(), fork_first_[fork]);
    order(fork_last_[fork], end);
  }
  push_to_queue({.kind = StepKind::End, .launch = launch_, .kernel = kernel},
                make_task(queue_, TaskKind::Copy));
  fork_first_.clear();
  fork_last_.clear();
}

AllocId StepBuilder::add_private(const std::string& name, const std::string& buffer, DType dtype,
                                 std::vector<bool> holds, Level level) {
  const AllocId id(static_cast<std::int64_t>(out_.plan.allocs.size()));
  out_.plan.allocs.push_back({.rank = out_.plan.queues[queue_.index()].rank,
                              .name = name,
                              .buffer = buffer,
                              .level = level,
                              .dtype = dtype,
                              .holds = std::move(holds)});
  return id;
}

void StepBuilder::order(std::int32_t from, std::int32_t to) { edges_.emplace_back(from, to); }

void StepBuilder::await(launch::SignalId signal, std::int32_t step) {
  out_.signals[signal.index()].awaited.push_back(step);
}

void StepBuilder::await(launch::SignalId signal, const AwaitedReads& reads) {
  await(signal, reads.step);
  out_.signals[signal.index()].reads.push_back(reads);
}

void StepBuilder::raise(const launch::Raise& raise, std::int32_t step) {
  SignalUse& use = out_.signals[raise.signal.index()];
  use.raised.push_back(step);
  use.adds += raise.adds > 0 ? raise.adds : 1;
}

void StepBuilder::raise_behind(const launch::Raise& raise, const std::vector<std::int32_t>& steps) {
  SignalUse& use = out_.signals[raise.signal.index()];
  use.raised.insert(use.raised.end(), steps.begin(), steps.end());
  use.adds += raise.adds > 0 ? raise.adds : 1;
}

void StepBuilder::repeat(std::int32_t groups) {
  Plan& plan = out_.plan;
  const std::size_t count = plan.tasks.size();
  const auto offset = static_cast<std::int32_t>(count);
  out_.scope.tasks = count;
  plan.tasks.reserve(2 * count);
  for (std::size_t step = 0; step < count; ++step) {
    const Task& of_first = plan.tasks[step];
    Task again = make_task(of_first.queue, of_first.kind);
    if (of_first.group >= 0) again.group = of_first.group + groups;
    again.collective = of_first.collective;
    plan.tasks.push_back(std::move(again));
  }
  for (const auto& [from, to] : edges_) {
    plan.syncs.push_back({.from = TaskId(from), .to = TaskId(to)});
    plan.syncs.push_back({.from = TaskId(from + offset), .to = TaskId(to + offset)});
  }
  add_signals(false);
  out_.syncs_of_words = plan.syncs.size();
  out_.barriers_of_words = plan.barriers.size();
  add_signals(true);
}

// Adds the order that signals give, in both executions. Credits are already there at the first.
void StepBuilder::add_signals(bool in_data) {
  const auto offset = static_cast<std::int32_t>(out_.scope.tasks);
  const auto moved = [](const std::vector<std::int32_t>& steps, std::int32_t by) {
    std::vector<TaskId> tasks;
    for (const std::int32_t step : steps) tasks.emplace_back(step + by);
    return tasks;
  };
  for (std::size_t id = 0; id < out_.signals.size(); ++id) {
    if (launches_->signals[id].is_in_data != in_data) continue;
    const SignalUse& use = out_.signals[id];
    const bool is_credit = launches_->signals[id].kind == launch::SignalKind::Credit;
    for (const std::int32_t to : is_credit ? std::vector{offset} : std::vector{0, offset}) {
      const std::int32_t from = is_credit ? 0 : to;
      if (use.awaited.empty()) continue;
      if (use.raised.size() == 1) {
        for (const TaskId waiting : moved(use.awaited, to)) {
          out_.plan.syncs.push_back({.from = TaskId(use.raised.front() + from), .to = waiting});
        }
      } else {
        out_.plan.barriers.push_back(
            {.from = moved(use.raised, from), .to = moved(use.awaited, to)});
      }
    }
  }
}

}  // namespace harpe::verifier
