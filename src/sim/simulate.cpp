#include "sim/simulate.h"

#include <algorithm>
#include <set>

#include "machine/rates.h"
#include "sim/build.h"
#include "sim/critical_path.h"
#include "sim/memory.h"
#include "sim/run.h"

namespace harpe {
namespace {

constexpr std::string_view kThePlan = "the plan";

// The task that an activity belongs to; for a Join, the task that it waited for last.
TaskId task_behind(const BuiltWorkload& built, const EngineRun& run, std::int32_t activity) {
  while (activity >= 0 && !built.of[static_cast<std::size_t>(activity)].task.valid()) {
    activity = run.spans[static_cast<std::size_t>(activity)].cause;
  }
  return activity < 0 ? TaskId() : built.of[static_cast<std::size_t>(activity)].task;
}

std::vector<Span> spans_of_tasks(const BuiltWorkload& built, const EngineRun& run) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < built.work_of_task.size(); ++i) {
    const auto at = [&](const std::vector<std::int32_t>& of) -> const Span& {
      return run.spans[static_cast<std::size_t>(of[i])];
    };
    const Span& first = at(built.first_of_task);
    Span span = at(built.work_of_task);
    span.ready = first.ready;
    span.begin = at(built.begin_of_task).begin;
    span.cause = task_behind(built, run, first.cause).value;
    span.kind = first.kind;
    spans.push_back(span);
  }
  return spans;
}

std::vector<ResourceShare> shares_of(const Machine& machine, const BuiltWorkload& built,
                                     const EngineRun& run) {
  std::vector<ResourceShare> shares;
  for (std::size_t i = 0; i < built.workload.resources.size(); ++i) {
    if (run.units[i] <= 0) continue;
    const Resource& resource = built.workload.resources[i];
    shares.push_back({.resource = resource,
                      .name = name_of(machine, resource),
                      .utilisation = run.units[i] / (resource.capacity * run.total.seconds())});
  }
  std::ranges::stable_sort(shares, std::ranges::greater(), &ResourceShare::utilisation);
  return shares;
}

std::string transports_at(const Machine& machine, int level) {
  std::string known;
  for (const TransportRate& rate : machine.transports) {
    if (rate.level != machine.levels[static_cast<std::size_t>(level)].name) continue;
    known += (known.empty() ? "" : ", ") + rate.via;
  }
  return known.empty() ? "none" : known;
}

Diag no_transport(const Machine& machine, Via via, RankId from, RankId to) {
  const int level = level_between(machine, from.value, to.value);
  return make_diag(DiagCode::M118, {{"machine", machine.name},
                                    {"via", print(via)},
                                    {"level", machine.levels[static_cast<std::size_t>(level)].name},
                                    {"from", from.value},
                                    {"to", to.value},
                                    {"known", transports_at(machine, level)}});
}

}  // namespace

Checked<Ok> check_ranks(const Mesh& mesh, const Machine& machine) {
  if (mesh.ranks() <= machine.processors()) return Ok{};
  return make_diag(
      DiagCode::M117,
      {{"ranks", mesh.ranks()}, {"machine", machine.name}, {"processors", machine.processors()}});
}

Checked<Ok> check_fits(const Plan& plan, const Machine& machine) {
  HP_REQUIRE_OK(check_ranks(plan.mesh, machine));
  std::set<std::pair<Via, int>> known;
  for (const Task& task : plan.tasks) {
    if (task.kind == TaskKind::Entry || task.kind == TaskKind::Exit) continue;
    if (task.kind == TaskKind::Collective) continue;  // collective_time has its own paths
    const RankId own = plan.queues[task.queue.index()].rank;
    const bool copies = task.kind == TaskKind::Copy;
    const RankId to = copies ? plan.allocs[task.writes.front().alloc.index()].rank : own;
    const Via via = copies ? task.via : Via::Sm;
    for (const auto* refs : {&task.reads, &task.writes}) {
      for (const Ref& ref : *refs) {
        const RankId from = plan.allocs[ref.alloc.index()].rank;
        if (from == to) continue;
        const int level = level_between(machine, from.value, to.value);
        if (!known.emplace(via, level).second) continue;
        if (find_transport(machine, print(via), level) != nullptr) continue;
        if (!copies && find_transport(machine, "tma", level) != nullptr) continue;
        return no_transport(machine, via, from, to);
      }
    }
  }
  return Ok{};
}

Checked<Ok> check_time(Picoseconds time, std::string_view what, const Machine& machine) {
  if (time < Picoseconds::longest()) return Ok{};
  return make_diag(DiagCode::M121, {{"what", what},
                                    {"limit", Picoseconds::longest().value / 1'000'000'000'000},
                                    {"machine", machine.name}});
}

Checked<Picoseconds> simulate_total(const Plan& plan, const launch::LaunchPlan& launches,
                                    const Machine& machine, const TimeLimit& limit) {
  const std::optional<BuiltRun> run = run_plan(plan, launches, machine, {}, limit);
  if (!run) return make_diag(DiagCode::I505, {{"work", "simulating the plan"}});
  HP_REQUIRE_OK(check_time(run->engine.total, kThePlan, machine));
  return run->engine.total;
}

Checked<Simulation> simulate(const Plan& plan, const launch::LaunchPlan& launches,
                             const Machine& machine, const SimulateOptions& options) {
  const BuiltRun run = run_plan(plan, launches, machine, options);
  HP_REQUIRE_OK(check_time(run.engine.total, kThePlan, machine));
  Simulation simulation;
  simulation.total = run.engine.total;
  simulation.tasks = spans_of_tasks(run.built, run.engine);
  simulation.resources = run.built.workload.resources;
  simulation.critical_path = critical_path(plan, machine, run.built, run.engine);
  simulation.shares = shares_of(machine, run.built, run.engine);
  simulation.exposed_communication = exposed_communication(plan, run.built, run.engine);
  simulation.memory = memory_over_time(plan, simulation.tasks);
  simulation.peak_bytes = arena_bytes(plan);
  for (const double bytes : run.built.level_bytes) {
    simulation.bytes_per_level.push_back(saturating_cast(bytes + 0.5));
  }
  simulation.activities = static_cast<std::int64_t>(run.built.of.size());
  simulation.ranks_simulated = run.ranks_simulated;
  return simulation;
}

}  // namespace harpe
