#include "driver/tune.h"

#include <algorithm>
#include <map>

#include "driver/certify.h"
#include "driver/files.h"
#include "driver/machines.h"
#include "driver/plan_cache.h"
#include "driver/plan_file.h"
#include "driver/report_page.h"
#include "driver/simulation.h"
#include "driver/summary.h"
#include "lower/lower.h"
#include "schedule/named/registry.h"
#include "schedule/replay.h"

namespace harpe {
namespace {

constexpr std::size_t kMostCompared = 12;

std::optional<PathSums> path_of(const Program& program, const Mesh& mesh, const Machine& machine,
                                const Evaluated& one) {
  if (!one.simulated) return std::nullopt;
  const Checked<Plan> plan = lower(program, mesh, one.form);
  if (!plan.ok()) return std::nullopt;
  return sum_path(simulate(*plan, machine));
}

SearchComparison compare(const Evaluated& other, const PathSums& best, const PathSums& its) {
  SearchComparison out{.schedule = other.label,
                       .ratio = its.total.seconds() / best.total.seconds(),
                       .excluded = other.excluded,
                       .differences = {}};
  std::map<Spending, std::int64_t> sums;
  for (const auto& [spending, time] : its.spent) sums[spending] += time.value;
  for (const auto& [spending, time] : best.spent) sums[spending] -= time.value;
  for (const auto& [spending, time] : sums) {
    if (time != 0) out.differences.emplace_back(spending, time);
  }
  std::ranges::stable_sort(out.differences, std::ranges::greater(),
                           [](const auto& entry) { return std::abs(entry.second); });
  return out;
}

void add_comparisons(Tuned& tuned) {
  const std::optional<PathSums> best =
      path_of(tuned.program, tuned.mesh, tuned.machine, tuned.result.top.front());
  if (!best) return;
  for (const Evaluated& named : tuned.result.baselines) {
    if (tuned.comparisons.size() == kMostCompared) return;
    const auto its = path_of(tuned.program, tuned.mesh, tuned.machine, named);
    if (its) tuned.comparisons.push_back(compare(named, *best, *its));
  }
}

}  // namespace

PathSums sum_path(const Simulation& simulation) {
  std::map<Spending, Picoseconds> sums;
  for (const Segment& segment : simulation.critical_path) {
    sums[segment.spending] += segment.end - segment.begin;
  }
  PathSums out{.total = simulation.total, .spent = {sums.begin(), sums.end()}};
  std::ranges::stable_sort(out.spent, std::ranges::greater(),
                           [](const auto& entry) { return entry.second; });
  return out;
}

Checked<Tuned> tune(Session& session, const TuneRequest& request) {
  Tuned tuned;
  HP_TRY(tuned.program, session.program(request.subject));
  HP_TRY(tuned.mesh, session.mesh(request.subject));
  HP_TRY(tuned.machine, machine_for(request.subject.machine, tuned.mesh));
  SearchOptions options = request.search;
  options.family = schedule_family(tuned.program);
  std::optional<CacheKey> key;
  if (request.subject.cache) {
    key =
        make_cache_key(tuned.program, tuned.mesh, tuned.machine, options, request.subject.version);
    CacheAnswer answer = consult_cache(*request.subject.cache, *key);
    if (answer.exact) tuned.known_since = answer.exact->date;
    tuned.seeds = std::ssize(answer.seeds);
    tuned.passed_over = std::move(answer.passed_over);
    options.seeds = std::move(answer.seeds);
  }
  HP_TRY(tuned.result, search(tuned.program, tuned.mesh, tuned.machine, options));
  add_comparisons(tuned);
  // What was cut short is no answer to keep.
  if (key && tuned.result.complete) {
    const Checked<Ok> kept = store(*request.subject.cache, make_cache_entry(*key, tuned.result));
    if (!kept.ok()) tuned.passed_over.push_back(kept.error());
  }
  return tuned;
}

Checked<NormalForm> choose_schedule(const Program& program, const Mesh& mesh,
                                    const Request& request) {
  const std::string family = schedule_family(program);
  const auto by_rule = [&]() -> Checked<NormalForm> {
    HP_TRY(const Script script, choose_auto(family, program, mesh));
    return replay(program, mesh, script);
  };
  const Checked<Machine> machine = machine_for(request.machine, mesh);
  if (!machine.ok()) {
    if (request.machine) return machine.error();
    return by_rule();
  }
  SearchOptions options;
  options.family = family;
  options.top = 1;
  if (request.cache) {
    const CacheKey key = make_cache_key(program, mesh, *machine, options, request.version);
    const CacheAnswer answer = consult_cache(*request.cache, key);
    if (answer.exact) return answer.exact->schedules.front().form;
  }
  const Checked<SearchResult> result = search(program, mesh, *machine, options);
  if (result.ok()) return result->top.front().form;
  if (result.error().code == DiagCode::S701) return result.error();
  return by_rule();
}

std::string script_of(const Tuned& tuned, const Evaluated& one) {
  return print(derive_script(tuned.program, tuned.mesh, one.form));
}

Checked<Ok> write_best(const std::string& path, const Tuned& tuned) {
  HP_TRY(const Plan plan, lower(tuned.program, tuned.mesh, tuned.result.top.front().form));
  HP_REQUIRE_OK(certify(plan, level_for(plan)));
  return write_text(path, print_plan_file(plan));
}

Checked<Ok> write_report(const std::string& path, const std::string& command,
                         const std::string& version, const Tuned& tuned) {
  HP_TRY(std::vector<ReportedPlan> plans,
         report_search(tuned.program, tuned.mesh, tuned.machine, tuned.result));
  return write_report(path, {.title = tuned.program.name + " on " + print_mesh_option(tuned.mesh),
                             .command = command,
                             .version = version,
                             .machine = &tuned.machine,
                             .plans = std::move(plans),
                             .search = &tuned.result});
}

}  // namespace harpe
