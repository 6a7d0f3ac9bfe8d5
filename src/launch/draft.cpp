#include "launch/draft.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "plan/refs.h"

namespace harpe::launch {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

constexpr std::string_view kReasons[] = {
#define HP_REASON(NAME, TEXT) TEXT,
#include "launch/reasons.def"
#undef HP_REASON
};

void replace(std::string& text, std::string_view name, std::int64_t value) {
  if (const std::size_t at = text.find(name); at != std::string::npos) {
    text.replace(at, name.size(), std::to_string(value));
  }
}

void add_once(std::vector<TaskId>& tasks, TaskId task) {
  if (tasks.empty() || tasks.back() != task) tasks.push_back(task);
}

}  // namespace

std::string print(const Decision& decision) {
  if (!decision.refused) return "applied";
  std::string text(kReasons[static_cast<std::size_t>(*decision.refused)]);
  replace(text, "{a}", decision.a);
  replace(text, "{b}", decision.b);
  return text;
}

Launch proposal(const Launch& launch) {
  return {.rank = launch.rank,
          .queue = launch.queue,
          .does = launch.does,
          .reserved_sms = launch.reserved_sms};
}

Checked<Draft> Draft::begin(const DraftSource& source, const std::vector<AllocId>& partials16) {
  Draft draft(source);
  draft.out.partials16 = partials16;
  draft.add_signals();
  draft.index_tasks();
  draft.add_steps();
  HP_REQUIRE_OK(draft.add_kernels());
  return draft;
}

void Draft::add_signals() {
  std::int32_t count = 0;
  for (std::size_t rank = 0; rank < wiring.pages.size(); ++rank) {
    first_signal.push_back(count);
    count += static_cast<std::int32_t>(wiring.pages[rank].size());
    for (const sync::PageSignal& signal : wiring.pages[rank]) {
      out.signals.push_back({.rank = RankId(static_cast<std::int64_t>(rank)),
                             .kind = signal.kind,
                             .index = signal.index,
                             .arrivals = signal.arrivals,
                             .from = signal.producers,
                             .is_posted = signal.is_posted});
    }
  }
}

void Draft::index_tasks() {
  const std::size_t tasks = plan.tasks.size();
  step_at.assign(tasks, 0);
  next_of.assign(tasks, std::nullopt);
  silent_from.assign(tasks, kNever);
  for (std::vector<bool>* const flags : {&is_first, &is_followed, &has_kernels, &is_by_engine}) {
    flags->assign(tasks, false);
  }
  readers.resize(plan.allocs.size());
  writers.resize(plan.allocs.size());
  std::vector<TaskId> last(plan.queues.size());
  for (std::size_t i = 0; i < tasks; ++i) {
    const TaskId id(static_cast<std::int64_t>(i));
    TaskId& before = last[plan.tasks[i].queue.index()];
    is_first[i] = !before.valid();
    if (before.valid()) next_of[before.index()] = id;
    before = id;
    for (const TaskId from : wiring.tasks[i].after) is_followed[from.index()] = true;
    for (const Ref& ref : plan.tasks[i].reads) add_once(readers[ref.alloc.index()], id);
    for (const Ref& ref : plan.tasks[i].writes) add_once(writers[ref.alloc.index()], id);
  }
}

Launch Draft::launch_of(RankId rank, TaskId id, bool lands) const {
  const sync::TaskWiring& own = wiring.on(plan, rank, id);
  Launch launch{.rank = rank, .queue = task(id).queue, .does = {id}, .lands = lands};
  for (const std::int32_t signal : own.waits) launch.awaits.push_back(signal_id(rank, signal));
  for (const sync::PageRaise& raise : own.arrivals) launch.ready.push_back(raise_of(raise));
  if (own.arrival) launch.all_ready = signal_id(rank, *own.arrival);
  for (const sync::PageRaise& raise : own.raises_after_pull)
    launch.pulled.push_back(raise_of(raise));
  if (own.pulled) launch.all_pulled = signal_id(rank, *own.pulled);
  for (const sync::PageRaise& raise : own.raises) launch.raises.push_back(raise_of(raise));
  launch.begins_epoch = task(id).kind == TaskKind::Entry;
  return launch;
}

// The landings of a rank's incoming puts follow its Entry.
void Draft::add_steps() {
  std::map<TaskId, std::size_t> landings;
  for (std::size_t at = 0; at < wiring.sequence.size(); ++at) {
    const RankId rank(static_cast<std::int64_t>(at));
    for (const TaskId id : wiring.sequence[at]) {
      step_at[id.index()] = steps.size();
      steps.push_back({.launch = launch_of(rank, id, false)});
      if (task(id).kind != TaskKind::Entry) continue;
      for (const TaskId put : wiring.landed[at]) {
        landings[put] = steps.size();
        steps.push_back({.launch = launch_of(rank, put, true)});
      }
    }
  }
  position = step_at;
  for (Step& step : steps) {
    const RankId rank = step.launch.rank;
    for (const TaskId from : wiring.on(plan, rank, step.launch.does.front()).after) {
      const std::size_t before =
          rank_of(plan, from) == rank ? step_at[from.index()] : landings.at(from);
      step.launch.after.emplace_back(static_cast<std::int64_t>(before));
    }
  }
}

Checked<Ok> Draft::add_kernels() {
  for (Step& step : steps) {
    const TaskId id = step.launch.does.front();
    if (step.launch.lands) {
      HP_TRY(step.launch.kernels, offers.landing_of(id));
      continue;
    }
    HP_TRY(const std::span<const Kernel> kernels, offers.kernels_of(id));
    step.launch.kernels.assign(kernels.begin(), kernels.end());
    const auto is_copy = [&](const Kernel& kernel) { return kernel.name == target.copy_engine; };
    has_kernels[id.index()] = !step.launch.kernels.empty();
    const auto own = [&](const Ref& ref) { return alloc_of(ref).rank == step.launch.rank; };
    const bool is_local =
        std::ranges::all_of(task(id).reads, own) && std::ranges::all_of(task(id).writes, own);
    // A kernel, not the copy engine, copies within a GPU.
    is_by_engine[id.index()] = step.launch.kernels.empty() ||
                               (std::ranges::all_of(step.launch.kernels, is_copy) && !is_local);
  }
  return Ok{};
}

std::optional<DType> Draft::operand_type(const Kernel& kernel, const Panel& panel) const {
  if (panel.meets.empty()) return std::nullopt;
  const auto& reads = kernel.arrivals[static_cast<std::size_t>(panel.meets.front())].reads;
  if (reads.empty()) return std::nullopt;
  return dtype_of(reads.front().alloc);
}

void Draft::join(std::size_t step, std::size_t other) {
  Launch& launch = steps[step].launch;
  Launch& joined = steps[other].launch;
  for (const TaskId id : joined.does) step_at[id.index()] = step;
  launch.does.insert(launch.does.end(), joined.does.begin(), joined.does.end());
  launch.raises.insert(launch.raises.end(), joined.raises.begin(), joined.raises.end());
  steps[other].is_joined = true;
}

void Draft::silence(TaskId id, std::size_t from_step) {
  silent_from[id.index()] = std::min(silent_from[id.index()], from_step);
}

LaunchPlan Draft::plan_so_far() const { return Draft(*this).finish(); }

LaunchPlan Draft::finish() {
  std::vector<LaunchId> ids(steps.size());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].is_joined) ids[i] = LaunchId(count++);
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].is_joined) ids[i] = ids[step_at[steps[i].launch.does.front().index()]];
  }
  out.launches.reserve(static_cast<std::size_t>(count));
  for (Step& step : steps) {
    if (step.is_joined) continue;
    Launch& launch = out.launches.emplace_back(std::move(step.launch));
    for (LaunchId& from : launch.after) from = ids[from.index()];
    for (LaunchId& from : launch.begun) from = ids[from.index()];
  }
  return std::move(out);
}

}  // namespace harpe::launch
